import test from 'ava';
import type { BucketSettings, Buckets, ObjectRange } from '../../../../src/recording/delivery/buckets.ts';
import { StoredFiles } from '../../../../src/recording/delivery/stored-files.ts';

const NAMES = { vhost: 'v', app: 'a' };
const SETTINGS = {
  endpoint: 'http://s3.example',
  region: 'r',
  bucket: 'now',
  accessKeyId: 'id',
  secretAccessKey: 'key',
};
const FILE = { bucket: 'then', key: 'a b.mp4', url: 'http://s3.example/then/a%20b.mp4', etag: 'e', size: 10 };

function open(settings: BucketSettings | undefined) {
  const asked: [ObjectRange, BucketSettings][] = [];
  const read: Buckets['read'] = async (range, used) => {
    asked.push([range, used]);
    return { bytes: new ArrayBuffer(range.end - range.start), etag: 'e' };
  };
  const settingsOf = (vhost: string, app: string) => (vhost === 'v' && app === 'a' ? settings : undefined);
  return { asked, stored: new StoredFiles({ buckets: { read }, settingsOf }) };
}

test('a file is read with the present keys of its application, from the bucket where it is', async (t) => {
  const { asked, stored } = open({ ...SETTINGS, forcePathStyle: true });
  t.true(stored.reaches(NAMES, FILE));
  t.is((await stored.read(NAMES, FILE, 2, 5)).bytes.byteLength, 3);
  t.deepEqual(asked, [
    [
      { key: 'a b.mp4', etag: 'e', size: 10, start: 2, end: 5 },
      { ...SETTINGS, forcePathStyle: true, bucket: 'then' },
    ],
  ]);
});

test('a storage that the application does not upload to is not reached', async (t) => {
  t.false(open({ ...SETTINGS, forcePathStyle: true, endpoint: 'http://other.example' }).stored.reaches(NAMES, FILE));
  t.false(open(SETTINGS).stored.reaches(NAMES, FILE));
  t.false(open(SETTINGS).stored.reaches({ vhost: 'v', app: 'b' }, FILE));
  const none = open(undefined).stored;
  t.false(none.reaches(NAMES, FILE));
  await t.throwsAsync(none.read(NAMES, FILE, 0, 1), { code: 'NoUpload' });
});
