import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import type { NutStream } from '../../../src/containers/nut/format.ts';
import { NutReader, type NutFrame } from '../../../src/containers/nut/reader.ts';
import { NutWriter } from '../../../src/containers/nut/writer.ts';
import type { MediaTrack } from '../../../src/core/track.ts';
import { chooseDecoder, chooseEncoder, type ChosenJob } from '../../../src/transcode/module-choice.ts';
import { ffmpegArguments, type Command } from '../../../src/transcode/command.ts';
import type { EncodeJob } from '../../../src/transcode/encoding.ts';
import { sourceFramerate } from '../../../src/transcode/frame-parameters.ts';
import { probeFfmpeg, type Capabilities } from '../../../src/transcode/probe.ts';
import { canMapTones } from '../../../src/transcode/tone-filter.ts';

/** What a NUT holds. */
export interface Recording {
  readonly streams: readonly NutStream[];
  readonly frames: readonly NutFrame[];
}

/** What one output of a command put out, with times on the input's clock. */
export interface Output {
  readonly stream: NutStream | undefined;
  /** Seconds. */
  readonly times: readonly number[];
  /** Times of the key frames. */
  readonly keys: readonly number[];
  readonly frames: readonly NutFrame[];
  /** Bits per second. */
  readonly bitrate: number;
}

export interface Ran {
  readonly outputs: readonly Output[];
  readonly stderr: string;
  readonly code: number | null;
}

interface Work {
  readonly tracks: readonly MediaTrack[];
  readonly jobs: readonly (EncodeJob & Pick<ChosenJob, 'resumeAt'>)[];
  readonly decodes?: Command['decodes'];
}

const DECODES = { threadCount: 2, onlyKeyframes: false };
const OFFSET_SECONDS = 1;
const known = new Map<string, Promise<Capabilities>>();

/** The arguments of an ffmpeg for some work, everything chosen in software. */
export async function commandFor(ffmpeg: string, { tracks, jobs, decodes = DECODES }: Work): Promise<string[]> {
  const probing = known.get(ffmpeg) ?? probeFfmpeg(ffmpeg);
  known.set(ffmpeg, probing);
  const capabilities = await probing;
  const offer = { capabilities, devices: [] };
  const mapsTones = canMapTones(capabilities.filters);
  const decoders = tracks.map(({ codec }) => choiceOf(chooseDecoder(codec, offer)));
  const chosen = jobs.map(({ from, encoding, resumeAt }) => {
    const modules = encoding.type === 'image' ? undefined : encoding.modules;
    const choice = choiceOf(chooseEncoder(encoding.codec, modules, offer));
    return { job: { from, encoding }, choice, resumeAt, mapsTones };
  });
  return ffmpegArguments({ tracks, decoders, jobs: chosen, decodes });
}

function choiceOf(chosen: ReturnType<typeof chooseEncoder>): ChosenJob['choice'] {
  if ('reason' in chosen) throw new Error(chosen.reason);
  return chosen.choice;
}

/** Runs the command for some work on an input. */
export async function runWork(ffmpeg: string, input: Recording, work: Work): Promise<Ran> {
  const { child, stdin, stderr, pipes } = await spawnWork(ffmpeg, work);
  let said = '';
  stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  stdin.end(nutOf(input, work.tracks));
  const reading = Promise.all(pipes.map((pipe) => readOutput(pipe)));
  const [code] = (await once(child, 'close')) as [number | null];
  return { outputs: await reading, stderr: said, code };
}

/** The command for some work that got an input, which has not ended: how many frames each output has put out by now. */
export async function startWork(ffmpeg: string, input: Recording, work: Work) {
  const { child, stdin, stderr, pipes } = await spawnWork(ffmpeg, work);
  stderr.resume();
  const counts = pipes.map(() => 0);
  for (const [index, pipe] of pipes.entries()) {
    const reader = new NutReader({
      streams: () => {},
      frame: () => void (counts[index] = (counts[index] as number) + 1),
    });
    pipe.on('data', (chunk: Buffer) => reader.push(chunk));
  }
  stdin.write(nutOf(input, work.tracks));
  return { counts, stop: () => child.kill('SIGKILL') };
}

async function spawnWork(ffmpeg: string, work: Work) {
  const args = await commandFor(ffmpeg, work);
  const outputs = work.jobs.map((): 'pipe' => 'pipe');
  const child = spawn(ffmpeg, args, {
    stdio: ['pipe', 'ignore', 'pipe', ...outputs],
    env: { ...process.env, SVT_LOG: '1' },
  });
  const [stdin, , stderr, ...pipes] = child.stdio as [Writable, null, Readable, ...Readable[]];
  // one that ends early is judged by what it put out
  stdin.on('error', () => {});
  return { child, stdin, stderr, pipes };
}

/** What ffmpeg makes of its arguments when it is told to write NUT. */
export async function recordNut(args: readonly string[], ffmpeg = 'ffmpeg'): Promise<Recording> {
  const options = ['-hide_banner', '-nostdin', '-loglevel', 'error', ...args, '-f', 'nut', 'pipe:1'];
  const child = spawn(ffmpeg, options, { stdio: ['ignore', 'pipe', 'inherit'] });
  return readNut(child.stdout);
}

async function readNut(readable: Readable): Promise<Recording> {
  let streams: readonly NutStream[] = [];
  const frames: NutFrame[] = [];
  const reader = new NutReader({
    streams: (told) => (streams = told),
    frame: (frame) => void frames.push({ ...frame, data: Buffer.from(frame.data) }),
  });
  for await (const chunk of readable) reader.push(chunk as Buffer);
  return { streams, frames };
}

/** The bytes of a NUT as the transcoder writes it: an offset of a second, and the frame rates that tracks declare. */
export function nutOf({ streams, frames }: Recording, tracks: readonly MediaTrack[]): Buffer {
  const writer = new NutWriter(
    streams.map((stream, index) => {
      const track = tracks[index];
      const video = stream.kind === 'video' && track?.type === 'video';
      return video ? { ...stream, framerate: sourceFramerate(track, 0) } : stream;
    }),
  );
  const parts = [writer.header()];
  for (const { stream, pts, key, data } of frames) {
    const { num, den } = (streams[stream] as NutStream).timebase;
    parts.push(Buffer.from(writer.head(stream, pts + (OFFSET_SECONDS * den) / num, key, data.length)), data);
  }
  return Buffer.concat(parts);
}

async function readOutput(readable: Readable): Promise<Output> {
  const { streams, frames } = await readNut(readable);
  const stream = streams[0];
  const { num, den } = stream?.timebase ?? { num: 1, den: 1 };
  const time = ({ pts }: NutFrame) => (pts * num) / den - OFFSET_SECONDS;
  const times = frames.map(time);
  const bytes = frames.reduce((sum, { data }) => sum + data.length, 0);
  const bitrate = (bytes * 8) / (Math.max(...times) - Math.min(...times));
  return { stream, times, keys: frames.filter(({ key }) => key).map(time), frames, bitrate };
}
