import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { VPX_REALTIME } from '../media/ffmpeg.ts';

const run = promisify(execFile);

export type VideoName = 'H264' | 'H265' | 'VP8';
export type AudioName = 'AAC' | 'OPUS';
/** What is published: a picture and a sound. */
export type Codecs = `${VideoName}+${AudioName}`;

export const WIDTH = 160;
export const HEIGHT = 90;
export const FRAMERATE = 25;
/** Seconds from flash to flash, each with a beep. */
export const PERIOD = 2;
/** A flash begins so many seconds behind a full period. */
const AT = 0.795;
const LASTS = 0.24;
/** As long as a run on a machine that is busy may take. */
const SECONDS = 90;

const isOn = `between(mod(t\\,${PERIOD})\\,${AT}\\,${AT + LASTS})`;

/** Sources of ffmpeg: a moving picture that turns white for a moment, and a tone that is heard in that moment only. */
export const PICTURE = `testsrc2=size=${WIDTH}x${HEIGHT}:rate=${FRAMERATE},drawbox=color=white:t=fill:enable='${isOn}'`;
export const SOUND = `aevalsrc='0.5*sin(2*PI*880*t)*${isOn}|0.5*sin(2*PI*880*t)*${isOn}':sample_rate=48000`;

const VIDEO: Readonly<Record<VideoName, readonly string[]>> = {
  H264: [
    '-c:v',
    'libx264',
    '-preset',
    'ultrafast',
    '-tune',
    'zerolatency',
    '-profile:v',
    'baseline',
    '-pix_fmt',
    'yuv420p',
    '-x264-params',
    `keyint=${FRAMERATE}:min-keyint=${FRAMERATE}:scenecut=0:sliced-threads=0`,
    '-b:v',
    '300k',
  ],
  H265: [
    '-c:v',
    'libx265',
    '-preset',
    'ultrafast',
    '-pix_fmt',
    'yuv420p',
    '-b:v',
    '300k',
    '-x265-params',
    `log-level=none:keyint=${FRAMERATE}:min-keyint=${FRAMERATE}:scenecut=0:bframes=2:b-adapt=0`,
  ],
  VP8: ['-c:v', 'libvpx', ...VPX_REALTIME, '-g', String(FRAMERATE), '-b:v', '300k'],
};

const AUDIO: Readonly<Record<AudioName, readonly string[]>> = {
  AAC: ['-c:a', 'aac', '-b:a', '96k'],
  OPUS: ['-c:a', 'libopus', '-b:a', '64k'],
};

/** Clips of the scene, encoded once each, gone with `close`. */
export class Clips {
  readonly folder: string;
  readonly #made = new Map<Codecs, Promise<string>>();

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async open(): Promise<Clips> {
    return new Clips(await mkdtemp(join(tmpdir(), 'kiln-matrix-')));
  }

  /** The path of a Matroska file. */
  of(codecs: Codecs): Promise<string> {
    const made = this.#made.get(codecs) ?? this.#make(codecs);
    this.#made.set(codecs, made);
    return made;
  }

  close(): Promise<void> {
    return rm(this.folder, { recursive: true, force: true });
  }

  async #make(codecs: Codecs): Promise<string> {
    const [video, audio] = codecs.split('+') as [VideoName, AudioName];
    const file = join(this.folder, `${codecs}.mkv`);
    await run('ffmpeg', [
      '-nostdin',
      '-v',
      'error',
      '-f',
      'lavfi',
      '-i',
      PICTURE,
      '-f',
      'lavfi',
      '-i',
      SOUND,
      '-t',
      String(SECONDS),
      ...VIDEO[video],
      ...AUDIO[audio],
      file,
    ]);
    return file;
  }
}
