import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { FfmpegError, findFfmpeg } from '../../src/ffmpeg.ts';
import { writeScript } from '../support/programs/script.ts';

const folder = await mkdtemp(join(tmpdir(), 'kiln-ffmpeg-'));
test.after.always(() => rm(folder, { recursive: true }));

const program = (name: string, text: string): string => writeScript(join(folder, name), text);

test('finds one that runs and tells its version', async (t) => {
  const { path, version } = await findFfmpeg();
  t.truthy(path);
  t.regex(version, /\d/);
});

test('the one that the environment names goes first', async (t) => {
  const path = program('named', 'echo "ffmpeg version n7.9 Copyright"');
  t.deepEqual(await findFfmpeg({ ...process.env, KILN_FFMPEG: path }), { path, version: 'n7.9' });
});

test('a named one that does not run, or is something else, is refused and not passed over', async (t) => {
  const refused = (path: string, message: RegExp) =>
    t.throwsAsync(findFfmpeg({ ...process.env, KILN_FFMPEG: path }), { instanceOf: FfmpegError, message });
  await refused(join(folder, 'absent'), /KILN_FFMPEG.*ENOENT/);
  await refused(program('other', 'echo "imagemagick version 7"'), /KILN_FFMPEG.*does not tell a version/);
  await refused(program('broken', 'echo "ffmpeg version 5.1"; exit 1'), /KILN_FFMPEG/);
});

test('the error without any ffmpeg says what to do', async (t) => {
  const found = await findFfmpeg({ PATH: folder }).catch((error: unknown) => error);
  if (!(found instanceof FfmpegError)) return t.regex((found as { path: string }).path, /ffmpeg-static/);
  t.regex(found.message, /apt install ffmpeg/);
  t.regex(found.message, /KILN_FFMPEG/);
});
