import { mkdtemp, open, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { MediaError } from '../../../../src/providers/scheduled/media-error.ts';
import { openBelow } from '../../../../src/providers/scheduled/media-root.ts';

test.serial('a file whose storage fails while it is looked at is closed again', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-root-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'a.mp4');
  await writeFile(path, '');
  const any = await open(path);
  const handles = Object.getPrototypeOf(any) as { stat: () => Promise<unknown> };
  await any.close();
  const { stat } = handles;
  t.teardown(() => Object.assign(handles, { stat }));
  const before = await readdir('/proc/self/fd');
  handles.stat = async () => {
    throw Object.assign(new Error('EIO: i/o error, fstat'), { code: 'EIO' });
  };
  await t.throwsAsync(openBelow(folder, 'file://a.mp4'), { instanceOf: MediaError, message: /EIO/ });
  t.deepEqual((await readdir('/proc/self/fd')).length, before.length);
});
