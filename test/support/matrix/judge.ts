import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { PATIENCE_MS } from '../time/until.ts';
import { PERIOD } from './clip.ts';

/** Mean of the luma, of 255; only a flash is that bright. */
const BRIGHT = 200;
/** Decibels below full scale. */
const LOUD = -30;
const SAMPLES = 480;

export interface Judgement {
  readonly pictures: number;
  readonly keyFrames: number;
  /** Of all pictures, such as `160x90`. */
  readonly sizes: readonly string[];
  /** Seconds of sound. */
  readonly sound: number;
  /** By how many seconds each beep comes behind its flash, of those whose beginning is there. */
  readonly skews: readonly number[];
}

export interface Source {
  /** A URL, the bytes of a file, or bytes as they come. */
  readonly from: string | Buffer | Readable;
  readonly seconds?: number;
  /** Which sound of it. */
  readonly sound?: number;
}

/**
 * Decodes a picture and a sound with ffmpeg, which gives up at the first thing that it does not like.
 * @throws Error with what it says
 */
export async function judge({ from, seconds, sound = 0 }: Source): Promise<Judgement> {
  const child = spawn(
    'ffmpeg',
    [
      '-nostdin',
      '-loglevel',
      'repeat+level+info',
      '-nostats',
      '-xerror',
      '-err_detect',
      'explode',
      '-i',
      typeof from === 'string' ? from : 'pipe:0',
      ...(seconds === undefined ? [] : ['-t', String(seconds)]),
      '-map',
      '0:v:0',
      '-map',
      `0:a:${sound}`,
      '-vf',
      'showinfo',
      '-af',
      `asetnsamples=n=${SAMPLES},astats=metadata=1:reset=1,ametadata=mode=print:key=lavfi.astats.Overall.RMS_level:file=-`,
      '-fps_mode',
      'passthrough',
      '-enc_time_base',
      '-1',
      '-f',
      'null',
      '/dev/null',
    ],
    { stdio: ['pipe', 'pipe', 'pipe'] },
  );
  // it closes what it has had enough of
  child.stdin.on('error', () => {});
  if (from instanceof Readable) from.pipe(child.stdin);
  else child.stdin.end(typeof from === 'string' ? undefined : from);
  const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  const [status] = await once(child, 'close');
  clearTimeout(timer);
  const complaints = stderr.split('\n').filter((line) => /\[(error|fatal|panic)\]/.test(line));
  if (status !== 0 || complaints.length > 0) {
    throw new Error(`ffmpeg ended with ${status}: ${complaints.join('\n') || stderr.slice(-2000)}`);
  }
  return judgement(stderr, stdout);
}

const SHOWN = /\bpts_time:(\S+) .*\bs:(\d+x\d+) .*\biskey:(\d) .*\bmean:\[(\d+)/;
const LEVEL = /pts_time:(\S+)\s+lavfi\.astats\.Overall\.RMS_level=(\S+)/g;

function judgement(shown: string, levels: string): Judgement {
  const pictures = shown.split('\n').flatMap((line) => {
    const [, time, size = '', key, mean] = SHOWN.exec(line) ?? [];
    return time === undefined ? [] : [{ time: Number(time), size, key: key === '1', on: Number(mean) > BRIGHT }];
  });
  const sounds = [...levels.matchAll(LEVEL)].map(([, time, level]) => ({
    time: Number(time),
    on: Number(level) > LOUD,
  }));
  const beeps = begins(sounds);
  return {
    pictures: pictures.length,
    keyFrames: pictures.filter(({ key }) => key).length,
    sizes: [...new Set(pictures.map(({ size }) => size))],
    sound: (sounds.length * SAMPLES) / 48_000,
    skews: begins(pictures).flatMap((flash) => {
      const [nearest] = beeps.map((beep) => beep - flash).sort((one, other) => Math.abs(one) - Math.abs(other));
      return nearest === undefined || Math.abs(nearest) > PERIOD / 2 ? [] : [nearest];
    }),
  };
}

/** When it turned on, where nothing is missing just before. */
function begins(moments: readonly { readonly time: number; readonly on: boolean }[]): number[] {
  const steps = moments.map(({ time }, i) => time - (moments[i - 1]?.time ?? -Infinity));
  const usual = steps.toSorted((one, other) => one - other)[moments.length >> 1] as number;
  return moments
    .filter(({ on }, i) => on && moments[i - 1]?.on === false && (steps[i] as number) < usual * 1.5)
    .map(({ time }) => time);
}
