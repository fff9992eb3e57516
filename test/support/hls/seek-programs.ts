import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const SCRIPT = fileURLToPath(import.meta.resolve('./gst-seek.py'));
/** Bits of the number that each frame shows, in blocks, the lowest first. */
const BITS = 16;
/** Times that a program is started: GStreamer 1.22 and VLC 3.0 may find no video at the edge of LL-HLS, whatever is asked of them then. */
const STARTS = 5;
/** Far more than a program needs to seek on a machine that is busy. */
const TIMEOUT_MS = 150_000;

/**
 * Seeks with GStreamer's playbin3.
 * @param seconds media times
 * @returns number of the frame that it shows after each
 */
export async function seenByGStreamer(uri: string, seconds: readonly number[]): Promise<number[]> {
  // not the one of a version manager, which lacks GStreamer
  const { stdout } = await run('/usr/bin/python3', [SCRIPT, JSON.stringify({ uri, seconds, bits: BITS })], {
    env: { ...process.env, GST_PLUGIN_FEATURE_RANK: 'hlsdemux2:MAX' },
    timeout: TIMEOUT_MS,
  });
  return stdout.split('\n').filter(Boolean).map(Number);
}

/**
 * Plays some seconds with VLC.
 * @param start media time, in seconds
 * @returns numbers of the frames that it read
 */
export async function seenByVlc(uri: string, start: number, seconds: number): Promise<number[]> {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-vlc-'));
  await chmod(folder, 0o777);
  const file = join(folder, 'played.ts');
  const times = ['--start-time', `${start}`, '--run-time', `${seconds}`];
  const output = ['--sout', `#std{access=file,mux=ts,dst=${file}}`];
  // it refuses to be root
  const unprivileged = ['--reuid', '65534', '--regid', '65534', '--clear-groups'];
  try {
    await run(
      'setpriv',
      [...unprivileged, 'cvlc', '-I', 'dummy', '--no-dbus', ...times, ...output, uri, 'vlc://quit'],
      {
        env: { ...process.env, HOME: folder },
        timeout: TIMEOUT_MS,
      },
    );
    return await seenByFfmpeg(file);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Starts a program anew when it has shown nothing. @throws its last error */
export async function startedAnew(see: () => Promise<number[]>): Promise<number[]> {
  for (let start = 1; ; start++) {
    try {
      return await see();
    } catch (error) {
      if (start === STARTS) throw error;
    }
  }
}

/** Reads with ffmpeg. @param options of its input @returns numbers of the frames */
export async function seenByFfmpeg(
  input: string,
  options: readonly string[] = [],
  seconds?: number,
): Promise<number[]> {
  const filter = `crop=iw:ih/2:0:ih/4,scale=${BITS}:1:flags=area,format=gray`;
  const length = seconds === undefined ? [] : ['-t', `${seconds}`];
  const output = ['-an', '-fps_mode', 'passthrough', ...length, '-vf', filter, '-f', 'rawvideo', 'pipe:1'];
  const { stdout } = await run('ffmpeg', ['-nostdin', '-v', 'fatal', ...options, '-i', input, ...output], {
    encoding: 'buffer',
    maxBuffer: 2 ** 24,
    timeout: TIMEOUT_MS,
  });
  return Array.from({ length: stdout.length / BITS }, (_, frame) =>
    stdout
      .subarray(frame * BITS, (frame + 1) * BITS)
      .reduce((sum, level, bit) => (level > 128 ? sum + 2 ** bit : sum), 0),
  );
}
