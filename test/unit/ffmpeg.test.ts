import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { FfmpegError, findFfmpeg } from '../../src/ffmpeg.ts';

const folder = await mkdtemp(join(tmpdir(), 'kiln-ffmpeg-'));
test.after.always(() => rm(folder, { recursive: true }));

async function program(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, `#!/bin/sh\n${text}\n`);
  await chmod(path, 0o755);
  return path;
}

test('finds one that runs and tells its version', async (t) => {
  const { path, version } = await findFfmpeg();
  t.truthy(path);
  t.regex(version, /\d/);
});

test('the one that the environment names goes first', async (t) => {
  const path = await program('named', 'echo "ffmpeg version n7.9 Copyright"');
  t.deepEqual(await findFfmpeg({ ...process.env, KILN_FFMPEG: path }), { path, version: 'n7.9' });
});

test('a named one that does not run, or is something else, is refused and not passed over', async (t) => {
  const absent = join(folder, 'absent');
  await t.throwsAsync(findFfmpeg({ ...process.env, KILN_FFMPEG: absent }), { instanceOf: FfmpegError, message: /KILN_FFMPEG.*ENOENT/ });
  const other = await program('other', 'echo "imagemagick version 7"');
  await t.throwsAsync(findFfmpeg({ ...process.env, KILN_FFMPEG: other }), { instanceOf: FfmpegError, message: /KILN_FFMPEG/ });
  const broken = await program('broken', 'echo "ffmpeg version 5.1"; exit 1');
  await t.throwsAsync(findFfmpeg({ ...process.env, KILN_FFMPEG: broken }), { instanceOf: FfmpegError });
});
