import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { NutWriter } from '../../../src/containers/nut/writer.ts';
import { isMedia, type MediaTrack, type Track } from '../../../src/core/track.ts';
import { FaultLog } from '../../../src/log/log.ts';
import { FileSource } from '../../../src/channels/scheduled/file-source.ts';
import type { ItemUnit } from '../../../src/channels/scheduled/item-source.ts';
import type { MediaFiles } from '../../../src/channels/scheduled/media-files.ts';
import { nutStreamOf } from '../../../src/transcode/nut-stream.ts';

const run = promisify(execFile);

/** Runs ffmpeg for a test. @throws what it says when it fails */
export async function ffmpeg(...args: string[]): Promise<void> {
  await run('ffmpeg', ['-hide_banner', '-nostdin', '-loglevel', 'error', '-y', ...args]);
}

export interface Pattern {
  readonly seconds?: number;
  readonly size?: string;
  readonly rate?: string;
  readonly video?: readonly string[];
  readonly audio?: readonly string[];
}

const X264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2', '-g', '50', '-pix_fmt', 'yuv420p'];

/** Writes a file with a moving picture and a tone. Empty lists leave one of them out. */
export async function writePattern(file: string, pattern: Pattern = {}): Promise<void> {
  const { seconds = 4, size = '160x90', rate = '25', video = X264, audio = ['-c:a', 'aac', '-ac', '2'] } = pattern;
  const length = `d=${seconds}`;
  await ffmpeg(
    ...(video.length > 0 ? ['-f', 'lavfi', '-i', `testsrc2=s=${size}:r=${rate}:${length}`] : []),
    ...(audio.length > 0 ? ['-f', 'lavfi', '-i', `sine=440:r=48000:${length}`] : []),
    ...video,
    ...audio,
    file,
  );
}

/** A folder for the files of a test, which goes with it. */
export async function mediaFolder(): Promise<{ folder: string; remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-media-'));
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

/**
 * Processes, this one among them, that have files of a folder open. Deleted ones count.
 * @param program name of those that are meant; absent: all
 */
export async function processesReading(folder: string, program?: string): Promise<string[]> {
  const processes = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const isReading = await Promise.all(
    processes.map(async (id) => {
      // it may end meanwhile
      const name = await readFile(`/proc/${id}/comm`, 'utf8').catch(() => '');
      if (program !== undefined && name.trim() !== program) return false;
      const open = await readdir(`/proc/${id}/fd`).catch(() => []);
      const files = await Promise.all(open.map((fd) => readlink(`/proc/${id}/fd/${fd}`).catch(() => '')));
      return files.some((file) => file.startsWith(`${folder}/`));
    }),
  );
  return processes.filter((_, index) => isReading[index]);
}

export interface ReadFile {
  readonly units: readonly ItemUnit[];
  readonly failure: string | undefined;
}

/** All units of a file from a position on, in the order in which they are due. */
export function readUnits(
  files: MediaFiles,
  url: string,
  position = 0,
  audio = 1,
  forwardData = false,
): Promise<ReadFile> {
  const faults = new FaultLog(pino({ level: 'silent' }));
  const units: ItemUnit[] = [];
  return new Promise((resolve) => {
    const pump = (): void => {
      if (source.state === 'opening') return;
      for (let unit = source.queue.take(); unit !== undefined; unit = source.queue.take()) units.push(unit);
      source.taken();
      if (source.state !== 'ended') return;
      source.close();
      faults.close();
      resolve({ units, failure: source.failure });
    };
    const wishes = { video: true, audio: Array.from({ length: audio }, (_, index) => ({ name: `Audio ${index}` })) };
    // it may tell of its state while it takes something
    const onChange = (): void => void setImmediate(pump);
    const source = new FileSource({ files, ffmpeg: 'ffmpeg', url, position, wishes, forwardData, faults, onChange });
  });
}

/** Packets of one track, in decoding order, as a NUT for ffmpeg: times from `OFFSET` on. */
export function nutOf(track: MediaTrack, packets: readonly Pick<ItemUnit, 'pts' | 'key' | 'data'>[]): Buffer {
  const writer = new NutWriter([nutStreamOf(track)]);
  const earliest = Math.min(...packets.map(({ pts }) => pts));
  const frames = packets.flatMap(({ pts, key, data }) => [
    Buffer.from(writer.head(0, pts - earliest, key !== false, data.length)),
    data,
  ]);
  return Buffer.concat([writer.header(), ...frames]);
}

/** Packets in runs of one track object each. */
export function byTrack<P extends { readonly track: Track }>(packets: readonly P[]): Map<MediaTrack, P[]> {
  const found = new Map<MediaTrack, P[]>();
  for (const packet of packets) {
    const { track } = packet;
    if (!isMedia(track)) continue;
    const run = found.get(track) ?? [];
    found.set(track, run);
    run.push(packet);
  }
  return found;
}
