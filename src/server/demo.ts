import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { hostInUrl } from '../lib/address.ts';
import type { Logger } from '../log/log.ts';
import { BackOff } from '../lib/back-off.ts';
import { runProgram } from '../lib/run-program.ts';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** After a run of this length the next restart is quick again. */
const HEALTHY_MS = 10_000;
const KILL_AFTER_MS = 2000;
const PROBE_TIMEOUT_MS = 10_000;

/** Wall clock of the publisher, to the millisecond, for measuring latency by eye. */
const CLOCK =
  "drawtext=text='%{localtime\\:%T}.%{eif\\:mod(time(0)*1000\\,1000)\\:d\\:3}':font=monospace:fontsize=84" +
  ':fontcolor=white:x=(w-tw)/2:y=h*0.4-th/2:box=1:boxcolor=0x131110@0.85:boxborderw=28';

/** Colour bars, and a marker that runs along the grey strip once every two seconds. */
const BARS =
  'smptehdbars=size=1280x720:rate=30[bars];color=0x131110:size=48x60:rate=30[marker];' +
  `[bars][marker]overlay=x='298+mod(t\\,2)/2*(828-w)':y=420[out0]`;

/** Test pattern with its own counter, for an ffmpeg that cannot draw text. */
const PLAIN = 'testsrc2=size=1280x720:rate=30';

const TONE = 'sine=frequency=440:beep_factor=2:sample_rate=48000,volume=0.25,aformat=channel_layouts=stereo';

const ENCODE = [
  '-c:v',
  'libx264',
  '-preset',
  'superfast',
  '-tune',
  'zerolatency',
  '-pix_fmt',
  'yuv420p',
  '-bf',
  '0',
  '-g',
  '30',
  '-keyint_min',
  '30',
  '-sc_threshold',
  '0',
  '-b:v',
  '2000k',
  '-maxrate',
  '2000k',
  '-bufsize',
  '1000k',
  '-c:a',
  'aac',
  '-b:a',
  '128k',
];

export interface DemoOptions {
  /** Listening addresses as in Server.xml. */
  readonly ip: readonly string[];
  /** Names of the virtual host to publish to, may have wildcards. */
  readonly hostNames: readonly string[];
  readonly rtmpPort: number;
  readonly app: string;
  readonly stream: string;
  readonly ffmpegPath: string;
  readonly log: Logger;
}

/** A test pattern with a clock and a tone, published over RTMP to this machine until closed. */
export interface Demo {
  /** Ends the publisher; resolves when its process is gone. Idempotent. */
  close(): Promise<void>;
}

/** Starts the publisher and restarts it with growing pauses when it dies. */
export async function startDemo({ ip, hostNames, rtmpPort, app, stream, ffmpegPath, log }: DemoOptions): Promise<Demo> {
  const drawn = await draws(ffmpegPath);
  // filters of a source draw some frames ahead of their time, for sources are read ahead
  const clock = drawn ? ['-vf', CLOCK] : [];
  const path = `:${rtmpPort}/${encodeURIComponent(app)}`;
  const url = `rtmp://${ownAddress(ip)}${path}/${encodeURIComponent(stream)}`;
  // The server selects the virtual host by this name; any letter matches a wildcard.
  const [name = '*'] = hostNames;
  const tcUrl = name === '*' ? [] : ['-rtmp_tcurl', `rtmp://${hostInUrl(name.replace(/[*?]/g, 'a'))}${path}`];
  const publisher = new Publisher(
    ffmpegPath,
    [
      '-hide_banner',
      '-nostdin',
      '-nostats',
      '-loglevel',
      'warning',
      '-re',
      '-f',
      'lavfi',
      '-i',
      drawn ? BARS : PLAIN,
      '-re',
      '-f',
      'lavfi',
      '-i',
      TONE,
      ...clock,
      ...ENCODE,
      '-f',
      'flv',
      ...tcUrl,
      url,
    ],
    log,
  );
  return { close: () => publisher.close() };
}

/** Host of a URL that reaches this machine. */
function ownAddress(ip: readonly string[]): string {
  if (ip.some((address) => address === '*' || address === '0.0.0.0')) return '127.0.0.1';
  const [address = '127.0.0.1'] = ip;
  return hostInUrl(address === '::' ? '::1' : address);
}

/** Whether this ffmpeg can draw the clock: it has the filter and finds a font. */
async function draws(ffmpegPath: string): Promise<boolean> {
  const input = `color=size=1280x720,${CLOCK}`;
  try {
    const args = ['-v', 'error', '-f', 'lavfi', '-i', input, '-frames:v', '1', '-f', 'null', '-'];
    await runProgram(ffmpegPath, args, { timeoutMs: PROBE_TIMEOUT_MS });
    return true;
  } catch {
    return false;
  }
}

class Publisher {
  readonly #path: string;
  readonly #args: readonly string[];
  readonly #log: Logger;
  #child: ChildProcess | undefined;
  #restart: NodeJS.Timeout | undefined;
  readonly #backOff = new BackOff(LONGEST_PAUSE_MS, FIRST_PAUSE_MS);
  #closing: Promise<void> | undefined;

  constructor(path: string, args: readonly string[], log: Logger) {
    this.#path = path;
    this.#args = args;
    this.#log = log;
    this.#start();
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  #start(): void {
    const child = spawn(this.#path, this.#args, { stdio: ['ignore', 'ignore', 'pipe'], detached: true });
    const startedAt = performance.now();
    let lastLine = '';
    createInterface({ input: child.stderr }).on('line', (line) => {
      lastLine = line;
      this.#log.debug({ line }, 'demo publisher');
    });
    child.once('error', (error) => {
      lastLine = error.message;
    });
    child.once('close', (code, signal) => {
      this.#child = undefined;
      if (this.#closing !== undefined) return;
      if (performance.now() - startedAt > HEALTHY_MS) this.#backOff.reset();
      const pause = this.#backOff.next();
      this.#log.warn({ code, signal, lastLine, pause }, 'the demo publisher has ended and will be started again');
      this.#restart = setTimeout(() => this.#start(), pause);
    });
    this.#child = child;
  }

  async #end(): Promise<void> {
    clearTimeout(this.#restart);
    const child = this.#child;
    if (child === undefined) return;
    const gone = new Promise((resolve) => child.once('close', resolve));
    child.kill('SIGTERM');
    const kill = setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_MS);
    await gone;
    clearTimeout(kill);
  }
}
