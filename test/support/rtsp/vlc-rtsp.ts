import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ExecutionContext } from 'ava';
import { freePorts } from '../network/ports.ts';
import { until } from '../time/until.ts';

const run = promisify(execFile);
/** VLC refuses to be root. */
const NOBODY = ['--reuid', '65534', '--regid', '65534', '--clear-groups'];

/** VLC's RTSP server with a file in a loop: a URL of H.264 and AAC. @param mux `ts` for a transport stream */
export async function startVlc(t: ExecutionContext, mux?: 'ts'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-vlc-'));
  await chmod(folder, 0o777);
  const file = join(folder, 'clip.ts');
  await run('ffmpeg', [
    '-v',
    'error',
    '-nostdin',
    '-f',
    'lavfi',
    '-i',
    'testsrc2=size=160x90:rate=25',
    '-f',
    'lavfi',
    '-i',
    'sine=sample_rate=48000',
    '-t',
    '20',
    '-c:v',
    'libx264',
    '-preset',
    'ultrafast',
    '-g',
    '12',
    '-pix_fmt',
    'yuv420p',
    '-c:a',
    'aac',
    '-ac',
    '2',
    file,
  ]);
  const [port] = freePorts(1) as [number];
  const output = `#rtp{sdp=rtsp://127.0.0.1:${port}/live${mux === undefined ? '' : `,mux=${mux}`}}`;
  const vlc = ['cvlc', '-I', 'dummy', file, '--loop', '--sout', output, '--sout-keep'];
  const [program, ...args] = process.getuid?.() === 0 ? ['setpriv', ...NOBODY, ...vlc] : vlc;
  const child = spawn(program as string, args, { stdio: 'ignore', env: { ...process.env, HOME: folder } });
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await rm(folder, { recursive: true, force: true });
  });
  await until(
    'VLC listens',
    () =>
      new Promise<boolean>((resolve) => {
        const socket = connect(port, '127.0.0.1', () => {
          socket.destroy();
          resolve(true);
        });
        socket.once('error', () => resolve(false));
      }),
  );
  return `rtsp://127.0.0.1:${port}/live`;
}
