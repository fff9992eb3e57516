import { execFile } from 'node:child_process';
import { NutWriter } from '../../../src/containers/nut/writer.ts';
import type { AudioTrack } from '../../../src/core/track.ts';
import { nutStreamOf } from '../../../src/transcode/nut-stream.ts';
import type { Recording } from '../hls/llhls-recording.ts';

const SIDE = 16;
const SAMPLERATE = 48_000;
const LOUD = 0.05;
const BRIGHT = 128;
/** Sound that swings through zero is not silent; that is what silence lasts at least. */
const SILENCE_SECONDS = 0.2;

/** What ffmpeg decodes of some bytes, or of the file at a path. @throws Error with what it says when it does not like them */
export function decoded(file: Buffer | string, args: readonly string[]): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const input = typeof file === 'string' ? file : 'pipe:0';
    const options = ['-nostdin', '-v', 'error', '-i', input, ...args, 'pipe:1'];
    const child = execFile('ffmpeg', options, { encoding: 'buffer', maxBuffer: 2 ** 28 }, (error, stdout, stderr) => {
      if (error !== null || stderr.length > 0) reject(new Error(`ffmpeg: ${stderr.toString()}`));
      else resolve(stdout);
    });
    // one that does not like its input closes it
    child.stdin?.on('error', () => {});
    child.stdin?.end(typeof file === 'string' ? undefined : file);
  });
}

/** The last picture of an MP4 in grey, a byte per pixel. */
export async function lastPicture(file: Buffer, width: number, height: number): Promise<Buffer> {
  const pictures = await decoded(file, ['-f', 'rawvideo', '-pix_fmt', 'gray']);
  return pictures.subarray(-width * height);
}

/** When the picture turns from dark to bright, in seconds. */
export async function flashes({ file, frames }: Recording): Promise<number[]> {
  const pictures = await decoded(file, [
    '-vf',
    `scale=${SIDE}:${SIDE}`,
    '-fps_mode',
    'passthrough',
    '-pix_fmt',
    'gray',
    '-f',
    'rawvideo',
  ]);
  const times = frames.map(({ pts }) => pts).sort((one, other) => one - other);
  const bright = times.map((_, i) => mean(pictures.subarray(i * SIDE * SIDE, (i + 1) * SIDE * SIDE)) > BRIGHT);
  return times.filter((_, i) => i > 0 && bright[i] && !bright[i - 1]);
}

/** When silence turns into sound, in seconds. */
export async function beeps({ file, frames }: Recording): Promise<number[]> {
  const samples = floats(await decoded(file, ['-ac', '1', '-ar', String(SAMPLERATE), '-f', 'f32le']));
  const start = frames[0]?.pts ?? 0;
  const begun: number[] = [];
  let loudAt = 0;
  for (const [i, sample] of samples.entries()) {
    if (Math.abs(sample) < LOUD) continue;
    if (i - loudAt > SILENCE_SECONDS * SAMPLERATE) begun.push(start + i / SAMPLERATE);
    loudAt = i;
  }
  return begun;
}

/** The loudest sample of some packets in a row, 0 to 1. */
export async function loudness(track: AudioTrack, packets: readonly Buffer[], samplesEach: number): Promise<number> {
  const writer = new NutWriter([nutStreamOf(track)]);
  const frames = packets.flatMap((data, i) => [Buffer.from(writer.head(0, i * samplesEach, true, data.length)), data]);
  const samples = floats(await decoded(Buffer.concat([writer.header(), ...frames]), ['-ac', '1', '-f', 'f32le']));
  return samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
}

function mean(bytes: Buffer): number {
  return bytes.reduce((sum, byte) => sum + byte, 0) / bytes.length;
}

function floats(bytes: Buffer): Float32Array {
  return new Float32Array(Uint8Array.from(bytes).buffer);
}
