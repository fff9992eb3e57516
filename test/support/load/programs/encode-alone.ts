import { spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { NutReader } from '../../../../src/containers/nut/reader.ts';
import { NutWriter } from '../../../../src/containers/nut/writer.ts';
import { nutStreamOf } from '../../../../src/transcode/nut-stream.ts';
import { audioTrack, videoTrack } from '../../media/packets.ts';
import { inRealTime } from '../../time/real-time.ts';
import { loadClip } from '../clip.ts';
import { serve } from '../program.ts';
import { percentile } from '../statistics.ts';
import { monotonic } from '../stamp.ts';

export interface AloneOptions {
  /** ffmpeg and its arguments: it reads NUT with picture and sound, and writes every encode to a pipe of its own. */
  readonly command: readonly string[];
  /** File of `encodeClip`. */
  readonly clip: string;
  readonly outputs: number;
  /** For how long; the first second is not counted. */
  readonly seconds: number;
}

const FIRST_OUTPUT = 3;
const OFFSET_MS = 1000;
const WARM_UP_MS = 1000;
const VIDEO_HEAD = 5;
const AUDIO_HEAD = 2;

const commands = {
  /**
   * Runs an ffmpeg with nothing around it, feeds it a clip in real time, and times each picture from where it goes
   * in to where it comes out, in milliseconds.
   */
  async measure({ command: [path = '', ...args], clip: file, outputs, seconds }: AloneOptions) {
    const { videoConfig, audioConfig, units, length } = await loadClip(file);
    const pipes = Array.from({ length: outputs }, (): 'pipe' => 'pipe');
    const child = spawn(path, args, { stdio: ['pipe', 'ignore', 'inherit', ...pipes] });
    const tracks = [
      videoTrack({ config: videoConfig.subarray(VIDEO_HEAD), width: 1280, height: 720 }),
      audioTrack({ config: audioConfig.subarray(AUDIO_HEAD) }),
    ];
    const fed = new Map<number, number>();
    const delays: number[] = [];
    for (const output of child.stdio.slice(FIRST_OUTPUT)) timePictures(output as Readable, fed, delays);

    const input = child.stdin as Writable;
    const writer = new NutWriter(tracks.map(nutStreamOf));
    input.write(writer.header());
    const end = inRealTime(units, length, ({ type, body }, time) => {
      const stream = type === 'video' ? 0 : 1;
      const pts = Math.round(((time + OFFSET_MS) * (tracks[stream]?.timebase.den ?? 1)) / 1000);
      const data = body.subarray(type === 'video' ? VIDEO_HEAD : AUDIO_HEAD);
      const key = type === 'audio' || body.readUInt8(0) >> 4 === 1;
      // while it starts, frames wait
      if (type === 'video' && time >= WARM_UP_MS) fed.set(pts, monotonic());
      input.cork();
      input.write(writer.head(stream, pts, key, data.length));
      input.write(data);
      input.uncork();
    });
    await delay(seconds * 1000);
    end();
    child.kill('SIGKILL');
    return { p50: percentile(delays, 0.5), p99: percentile(delays, 0.99), frames: delays.length };
  },
};

export type AloneCommands = typeof commands;

serve(commands);

function timePictures(output: Readable, fed: ReadonlyMap<number, number>, delays: number[]): void {
  let video = false;
  const reader = new NutReader({
    streams: ([stream]) => (video = stream?.kind === 'video'),
    frame: ({ pts }) => {
      const since = video ? fed.get(pts) : undefined;
      if (since !== undefined) delays.push(monotonic() - since);
    },
  });
  output.on('data', (chunk: Buffer) => reader.push(chunk));
}
