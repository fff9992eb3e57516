import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { StoredFiles } from '../../../src/recording/delivery/stored-files.ts';
import { openPlayback } from '../../support/playback/recorded.ts';
import { memoryBucket } from '../../support/playback/stored.ts';

const GET = '/app/stream/get?start=2026-03-05T12:00:01.5Z';
const CLIPS = ['&duration=2&format=mp4', '&duration=2', '&duration=40&format=mp4'];

test('clips of a recording that is in a bucket alone have the same bytes, for few requests', async (t) => {
  let bucket: ReturnType<typeof memoryBucket> | undefined;
  const read: StoredFiles['read'] = async (...asked) => {
    if (bucket === undefined) throw new Error('nothing is uploaded yet');
    return await bucket.stored.read(...asked);
  };
  const local = await openPlayback(t);
  const stored = await openPlayback(t, { stored: { reaches: () => true, read } });
  const [, id] = [await local.recordMp4(0, 60, {}, 2000), await stored.recordMp4(0, 60, {}, 2000)];
  const path = join(stored.root, '0-.mp4');
  bucket = memoryBucket(readFileSync(path));
  const { bucket: name, key, url, etag = '' } = bucket.file;
  rmSync(path);
  const upload = { state: 'uploaded', bucket: name, key, url, etag } as const;
  await stored.index.note({ vhost: 'default', app: 'app' }, id, upload, false);
  for (const clip of CLIPS) {
    const { statusCode, rawPayload } = await stored.get(`${GET}${clip}`);
    t.is(statusCode, 200, rawPayload.subarray(0, 200).toString());
    t.true(rawPayload.equals((await local.get(`${GET}${clip}`)).rawPayload), clip);
  }
  // of its 4 MiB each block at most once, and each MiB of the long clip
  t.true(bucket.reads.length < 15, String(bucket.reads.length));
});
