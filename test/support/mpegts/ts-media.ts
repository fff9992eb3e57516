import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { AccessUnits, type AccessUnit } from '../../../src/containers/mpegts/access-units.ts';
import { AudioFrames } from '../../../src/containers/mpegts/audio-frames.ts';
import { audioSyntax, type AudioForm, type AudioFrame } from '../../../src/containers/mpegts/audio-syntax.ts';
import { TsDemuxer } from '../../../src/containers/mpegts/demuxer.ts';
import type { ElementaryStream, UnknownStream } from '../../../src/containers/mpegts/elementary.ts';
import type { PesHeader } from '../../../src/containers/mpegts/pes-header.ts';
import { encode } from '../media/ffmpeg-bytes.ts';
import { FFMPEG7 } from '../media/ffmpeg.ts';

const SECONDS = 2;

export const PATTERN = ['-f', 'lavfi', '-i', 'testsrc2=size=160x90:rate=25'];
export const TONE = ['-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000'];
export const X264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '25'];

/** What ffmpeg makes of its arguments as MPEG-TS, of two seconds. */
export function encodeTs(args: readonly string[], { ffmpeg = FFMPEG7, seconds = SECONDS } = {}): Promise<Buffer> {
  return encode([...args, '-t', `${seconds}`, '-f', 'mpegts'], ffmpeg);
}

/** A packet as ffprobe sees it; times on the clock of MPEG-TS. */
export interface ProbedPacket {
  readonly pts: number;
  readonly dts: number;
  readonly size: number;
}

/** Packets by PID, as ffprobe reads them. */
export async function probeTs(ts: Buffer): Promise<Map<number, ProbedPacket[]>> {
  const probe = spawn(
    'ffprobe',
    ['-v', 'error', '-f', 'mpegts', '-show_packets', '-show_streams', '-of', 'json', 'pipe:0'],
    { stdio: ['pipe', 'pipe', 'ignore'] },
  );
  probe.stdin.on('error', () => {}).end(ts);
  const { streams, packets } = JSON.parse(await text(probe.stdout)) as {
    streams: { index: number; id: string }[];
    packets: { stream_index: number; pts: number; dts: number; size: string }[];
  };
  return new Map(
    streams.map(({ index, id }) => [
      Number(id),
      packets
        .filter(({ stream_index }) => stream_index === index)
        .map(({ pts, dts, size }) => ({ pts, dts, size: Number(size) })),
    ]),
  );
}

/** All that a demuxer tells of some bytes. */
export interface Demuxed {
  readonly changes: { readonly streams: readonly ElementaryStream[]; readonly unknown: readonly UnknownStream[] }[];
  readonly pes: { readonly pid: number; readonly header: PesHeader; readonly payload: Buffer }[];
  readonly units: Map<number, AccessUnit[]>;
  readonly frames: Map<number, { readonly frame: AudioFrame; readonly time: number }[]>;
  readonly sections: { readonly pid: number; readonly section: Buffer }[];
  readonly clocks: number[];
  readonly lost: number[];
  readonly faults: string[];
}

/** @param chunk bytes of each portion that it gets */
export function demuxTs(ts: Buffer, chunk = 7 * 188): Demuxed {
  const { demuxed, demuxer } = openDemuxer();
  for (let at = 0; at < ts.length; at += chunk) demuxer.push(ts.subarray(at, at + chunk));
  demuxer.flush();
  return demuxed;
}

/** A demuxer, and all that it told so far. */
export function openDemuxer(): { demuxer: TsDemuxer; demuxed: Demuxed } {
  const demuxed: Demuxed = {
    changes: [],
    pes: [],
    units: new Map(),
    frames: new Map(),
    sections: [],
    clocks: [],
    lost: [],
    faults: [],
  };
  const cutters = new Map<ElementaryStream, (header: PesHeader, payload: Buffer) => void>();
  const fault = (reason: string) => demuxed.faults.push(reason);
  const demuxer = new TsDemuxer({
    streams: (streams, unknown) => {
      demuxed.changes.push({ streams, unknown });
      for (const stream of streams) if (!cutters.has(stream)) cutters.set(stream, cutterOf(stream, demuxed));
    },
    pes: (stream, header, payload) => {
      demuxed.pes.push({ pid: stream.pid, header, payload: Buffer.from(payload) });
      cutters.get(stream)?.(header, payload);
    },
    section: ({ pid }, section) => demuxed.sections.push({ pid, section: Buffer.from(section) }),
    lost: ({ pid }) => demuxed.lost.push(pid),
    clock: (pcr) => demuxed.clocks.push(pcr),
    fault,
  });
  return { demuxer, demuxed };
}

function cutterOf(
  { pid, kind, form, header }: ElementaryStream,
  demuxed: Demuxed,
): (header: PesHeader, payload: Buffer) => void {
  const fault = (reason: string) => demuxed.faults.push(reason);
  if (kind === 'video') {
    const list: AccessUnit[] = [];
    demuxed.units.set(pid, list);
    const units = new AccessUnits(form as 'H264' | 'H265', { unit: (unit) => list.push(unit), damaged: fault });
    return (pesHeader, payload) => units.push(pesHeader, payload);
  }
  if (kind === 'data') return () => {};
  const list: { frame: AudioFrame; time: number }[] = [];
  demuxed.frames.set(pid, list);
  const frames = new AudioFrames(audioSyntax(form as AudioForm, header), {
    frame: (frame, time) => list.push({ frame, time }),
    fault,
  });
  return ({ pts }, payload) => frames.push(payload, pts);
}
