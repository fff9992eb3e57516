import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { readFile } from 'node:fs/promises';
import { flvTags } from '../rtmp/flv-file.ts';

const run = promisify(execFile);

/** Whole numbers of frames of 30 Hz video and of 1024 samples of sound at 48 kHz: the clip loops without a seam. */
const SECONDS = 8;
const FRAMERATE = 30;
const SAMPLERATE = 48_000;
const AAC_SAMPLES = 1024;

export interface ClipOptions {
  readonly size: string;
  readonly kbit: number;
}

/** H.264 (key frame every second, no B-frames) and AAC, as bodies of RTMP messages. */
export interface Clip {
  readonly videoConfig: Buffer;
  readonly audioConfig: Buffer;
  /** In order of time. */
  readonly units: readonly ClipUnit[];
  /** Milliseconds after which it begins again. */
  readonly length: number;
}

export interface ClipUnit {
  readonly type: 'video' | 'audio';
  /** Milliseconds since the start of the clip. */
  readonly time: number;
  readonly body: Buffer;
}

/** Encodes a clip into a file that `loadClip` reads. */
export async function encodeClip(file: string, { size, kbit }: ClipOptions): Promise<void> {
  await run('ffmpeg', [
    '-nostdin',
    '-v',
    'error',
    '-y',
    '-f',
    'lavfi',
    '-i',
    `testsrc2=size=${size}:rate=${FRAMERATE},noise=alls=12:allf=t`,
    '-f',
    'lavfi',
    '-i',
    `sine=frequency=440:sample_rate=${SAMPLERATE},aformat=channel_layouts=stereo`,
    '-t',
    String(SECONDS + 1),
    '-c:v',
    'libx264',
    '-preset',
    'ultrafast',
    '-tune',
    'zerolatency',
    '-pix_fmt',
    'yuv420p',
    '-b:v',
    `${kbit}k`,
    '-maxrate',
    `${kbit}k`,
    '-bufsize',
    `${kbit}k`,
    '-g',
    String(FRAMERATE),
    '-x264-params',
    'sliced-threads=0:scenecut=0',
    '-c:a',
    'aac',
    '-b:a',
    '96k',
    '-flvflags',
    'no_duration_filesize',
    '-f',
    'flv',
    file,
  ]);
}

export async function loadClip(file: string): Promise<Clip> {
  let videoConfig: Buffer | undefined;
  let audioConfig: Buffer | undefined;
  const video: Buffer[] = [];
  const audio: Buffer[] = [];
  for (const { type, body } of flvTags(await readFile(file))) {
    const isConfig = body[1] === 0;
    if (type === 'video') {
      if (isConfig) videoConfig = body;
      else if (body[1] === 1) video.push(body);
    } else if (isConfig) {
      audioConfig = body;
    } else {
      audio.push(body);
    }
  }
  if (videoConfig === undefined || audioConfig === undefined) throw new Error(`${file} has no video or no audio`);
  const units = [...take('video', video, FRAMERATE), ...take('audio', audio, SAMPLERATE / AAC_SAMPLES)].sort(
    (one, other) => one.time - other.time,
  );
  return { videoConfig, audioConfig, units, length: SECONDS * 1000 };
}

/** @param rate frames per second */
function take(type: ClipUnit['type'], bodies: readonly Buffer[], rate: number): ClipUnit[] {
  const count = SECONDS * rate;
  if (bodies.length < count) throw new Error(`${bodies.length} instead of ${count} frames of ${type}`);
  return bodies.slice(0, count).map((body, i) => ({ type, time: (i * 1000) / rate, body }));
}
