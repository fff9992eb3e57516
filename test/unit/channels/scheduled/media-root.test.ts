import { mkdtemp, open, readdir, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { MediaError } from '../../../../src/channels/scheduled/media-error.ts';
import { openBelow } from '../../../../src/channels/scheduled/media-root.ts';

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
  handles.stat = async () => {
    throw Object.assign(new Error('EIO: i/o error, fstat'), { code: 'EIO' });
  };
  await t.throwsAsync(openBelow(folder, 'file://a.mp4'), { instanceOf: MediaError, message: /EIO/ });
  t.deepEqual(
    (await openFiles()).filter((file) => file.startsWith(folder)),
    [],
  );
});

/** Paths of what this process has open, other tests' files included. */
async function openFiles(): Promise<string[]> {
  const descriptors = await readdir('/proc/self/fd');
  // some are closed meanwhile
  return Promise.all(descriptors.map((descriptor) => readlink(`/proc/self/fd/${descriptor}`).catch(() => '')));
}
