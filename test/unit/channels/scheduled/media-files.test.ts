import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { MediaFiles } from '../../../../src/channels/scheduled/media-files.ts';
import { MediaError } from '../../../../src/channels/scheduled/media-error.ts';

test('an I/O error of a mount makes a file unreadable, and nothing else', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-media-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'a.mp4');
  await writeFile(path, 'a');
  const handle = await open(path);
  const prototype = Object.getPrototypeOf(handle) as typeof handle;
  await handle.close();
  const { stat, close } = prototype;
  t.teardown(() => Object.assign(prototype, { stat, close }));
  const files = new MediaFiles(folder, 'ffmpeg');
  t.true(await files.exists('file://a.mp4'));
  prototype.close = async function fail(this: typeof handle) {
    await close.call(this);
    throw new Error('EIO: i/o error, close');
  };
  t.true(await files.exists('file://a.mp4'));
  Object.assign(prototype, {
    async stat(this: typeof handle, options?: { bigint: true }) {
      if (options?.bigint === true) throw new Error('EIO: i/o error, fstat');
      return stat.call(this);
    },
  });
  t.false(await files.exists('file://a.mp4'));
  const unreadable: string[] = [];
  await files.measure(['file://a.mp4'], (url) => unreadable.push(url));
  t.deepEqual(unreadable, ['file://a.mp4']);
  await t.throwsAsync(files.open('file://a.mp4'), { instanceOf: MediaError, message: /fstat/u });
});
