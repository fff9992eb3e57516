import { setImmediate as turn } from 'node:timers/promises';
import { pino } from 'pino';
import { TsMuxer } from '../../src/containers/mpegts/muxer.ts';
import { NutReader } from '../../src/containers/nut/reader.ts';
import { NutWriter } from '../../src/containers/nut/writer.ts';
import type { Packet } from '../../src/core/packet.ts';
import { isMedia } from '../../src/core/track.ts';
import { FaultLog } from '../../src/log/log.ts';
import { FRAGMENTS } from '../../src/packaging/part-form.ts';
import { RUNS } from '../../src/packaging/frame-run.ts';
import { Segmenter } from '../../src/packaging/segmenter.ts';
import { TsSegment } from '../../src/packaging/ts-segment.ts';
import { TsSource } from '../../src/providers/mpegts-intake/source.ts';
import { createPacketizer } from '../../src/protocols/rtp/packetizer.ts';
import { parseRtp } from '../../src/protocols/rtp/receive/packet.ts';
import { RtpReceiver } from '../../src/protocols/rtp/receive/receiver.ts';
import { RtpSender } from '../../src/protocols/rtp/sender.ts';
import { nutStreamOf } from '../../src/transcode/nut-stream.ts';
import { offeredCodec } from '../../src/webrtc/codecs.ts';
import { MediaWorker } from '../../src/webrtc/media-worker.ts';
import { loadClip, type Clip } from '../support/load/clip.ts';
import { median } from '../support/load/statistics.ts';
import { cpuSeconds } from '../support/load/usage.ts';
import { audioTrack, videoTrack } from '../support/media/packets.ts';
import { number, type Line, type Measurement } from './measurement.ts';
import { readOvt, writeOvt } from './ovt.ts';
import { costLine, ROUNDS } from './ratio.ts';

/** Plays of the clip in a round. */
const PLAYS = 10;
const SENDS = 2;
/** Of what is measured beside a copy, in a round: once is too little. */
const TIMES = 10;
/** What a read of a pipe brings. */
const CHUNK = 65_536;
/** What seven packets of MPEG-TS take. */
const DATAGRAM = 1316;
const SEGMENTS = { chunkDuration: 0.5, segmentDuration: 2, firstSegmentDuration: 1, segmentCount: 10, firstMsn: 0 };
const CODEC = {
  kind: 'video',
  mimeType: 'video/H264',
  clockRate: 90_000,
  parameters: { 'packetization-mode': 1, 'profile-level-id': '42e01f' },
} as const;

/** The packet path, piece by piece, in this process. */
export const packets: Measurement = {
  name: 'packets',
  run: async ({ clip: file }) => {
    const clip = await loadClip(file);
    return [
      packetizing(clip),
      receiving(clip),
      await sending(clip),
      packaging(clip),
      packagingTs(clip),
      muxing(clip),
      demuxing(clip),
      ...exchanging(clip),
    ];
  },
};

function packetizing(clip: Clip): Line {
  const frames = toPackets(clip, 1).filter(({ track }) => track.type === 'video');
  let bytes = 0;
  const sender = newSender((packet) => (bytes += packet.length));
  const rounds = repeat(() => packetize(frames, sender, PLAYS));
  const each = sender.packets / ROUNDS;
  const sent = ROUNDS * PLAYS * frames.length;
  return {
    what: 'RTP packetizing per packet',
    measured: `${number((median(rounds) / each) * 1000, 2)} us`,
    reference: `${number(sender.packets / sent, 1)} packets, ${number(bytes / sent / 1000, 1)} kB a frame`,
  };
}

/** From packets, as a socket gives them, to frames. */
function receiving(clip: Clip): Line {
  const frames = toPackets(clip, 1).filter(({ track }) => track.type === 'video');
  const wire: Buffer[] = [];
  const sender = newSender((packet) => wire.push(Buffer.from(packet)));
  // fragments are changed in place as they are taken: each packet is there once for each time
  for (let round = 0; round < ROUNDS; round++) {
    for (const frame of frames) {
      sender.timestamp = (sender.timestamp + 3000) >>> 0;
      createPacketizer('H264').packetize(frame, sender);
    }
  }
  const each = wire.length / ROUNDS;
  let taken = 0;
  const receiver = new RtpReceiver({ encoding: 'H264', clockRate: 90_000, parameters: {} }, 50, {
    frame: () => taken++,
    damaged: () => undefined,
    configuration: () => undefined,
    lost: () => undefined,
    restarted: () => undefined,
  });
  let at = 0;
  const rounds = repeat(() => {
    for (const end = at + each; at < end; at++) receiver.push(parseRtp(wire[at] as Buffer), at);
  });
  if (taken !== ROUNDS * frames.length) throw new Error(`${taken} frames were taken`);
  return { what: 'RTP taking per packet', measured: `${number((median(rounds) / each) * 1000, 2)} us` };
}

/** CPU time of this process and of the worker, which has nobody to send to. */
async function sending(clip: Clip): Promise<Line> {
  const frames = toPackets(clip, 1).filter(({ track }) => track.type === 'video');
  const worker = await MediaWorker.start(
    0,
    [{ protocol: 'udp', ip: '127.0.0.1', port: 0, announced: ['127.0.0.1'] }],
    (error) => {
      throw error;
    },
  );
  const { mimeType, clockRate, parameters } = CODEC;
  const producer = await worker.produce(await worker.createDirectTransport(), offeredCodec('H264', false, 'All'), {
    codecs: [{ mimeType, clockRate, parameters, payloadType: 100 }],
    encodings: [{ ssrc: 1234 }],
  });
  const head = worker.rtp.headOf(producer);
  const sender = newSender((packet) => worker.rtp.add(head, packet));
  const packetizer = createPacketizer('H264');
  const workerStart = cpuSeconds(worker.pid);
  const costs: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    const sentBefore = sender.packets;
    for (let play = 0; play < SENDS; play++) {
      for (const frame of frames) {
        sender.timestamp = (sender.timestamp + 3000) >>> 0;
        packetizer.packetize(frame, sender);
        worker.rtp.flush();
        await turn();
      }
    }
    // answered when the worker has taken them all
    await producer.getStats();
    const { user, system } = process.cpuUsage(before);
    costs.push((user + system) / (sender.packets - sentBefore));
  }
  const workerCost = ((cpuSeconds(worker.pid) - workerStart) * 1e6) / sender.packets;
  worker.close();
  return {
    what: 'RTP packetizing and sending to a media worker, per packet',
    measured: `${number(median(costs), 1)} us`,
    reference: `${number(workerCost, 1)} us in the worker`,
  };
}

function packaging(clip: Clip): Line {
  const all = toPackets(clip, PLAYS);
  const log = pino({ level: 'silent' });
  const rounds = repeat(() => {
    const segmenter = new Segmenter(FRAGMENTS, SEGMENTS, log, new FaultLog(log));
    segmenter.setTracks([...new Set(all.map(({ track }) => track))]);
    for (const packet of all) segmenter.push(packet);
  });
  return { what: 'fMP4 packaging per frame', measured: `${number((median(rounds) / all.length) * 1000, 2)} us` };
}

/** The same frames as segments of MPEG-TS, which are planned for everybody and written for who asks. */
function packagingTs(clip: Clip): Line {
  const all = toPackets(clip, PLAYS);
  const tracks = [...new Set(all.map(({ track }) => track))].filter(isMedia);
  const log = pino({ level: 'silent' });
  const faults = new FaultLog(log);
  const written: number[] = [];
  const rounds = repeat(() => {
    const segmenter = new Segmenter(RUNS, { ...SEGMENTS, chunkDuration: 2, segmentCount: 1000 }, log, faults);
    segmenter.setTracks(tracks);
    for (const packet of all) segmenter.push(packet);
    segmenter.finish();
    const windows = [...segmenter.packagers.values()].map(({ window }) => window.kept);
    const muxer = new TsMuxer(tracks);
    const segments = (windows[0] ?? []).map(
      ({ msn, duration }) =>
        new TsSegment(
          { msn, duration, discontinuity: false, wallClock: 0 },
          windows.flatMap((kept) => kept.find((one) => one.msn === msn) ?? []),
          muxer,
          faults,
        ),
    );
    const start = performance.now();
    const bytes = segments.reduce((sum, { body }) => sum + body.reduce((length, each) => length + each.length, 0), 0);
    if (bytes === 0) throw new Error('nothing was written');
    written.push(performance.now() - start);
  });
  const each = (time: number) => number((time / all.length) * 1000, 2);
  const writing = median(written);
  return {
    what: 'MPEG-TS packaging per frame, planned / written',
    measured: `${each(median(rounds) - writing)} / ${each(writing)} us`,
  };
}

/** MPEG-TS as it goes to a live socket, against a copy of the same bytes. */
function muxing(clip: Clip): Line {
  const all = toPackets(clip, PLAYS);
  const tracks = [...new Set(all.map(({ track }) => track))];
  const write = () => {
    const muxer = new TsMuxer(tracks);
    for (const packet of all) muxer.write(packet);
  };
  const data = all.map((packet) => packet.data);
  return beside(data, { what: 'MPEG-TS muxing per frame', frames: all.length, reached: 32, work: write });
}

/** Datagrams of a transport stream to packets of an input stream, against a copy of the same bytes. */
function demuxing(clip: Clip): Line {
  const all = toPackets(clip, PLAYS);
  const muxer = new TsMuxer([...new Set(all.map(({ track }) => track))]);
  const datagrams = split(Buffer.concat(all.map((packet) => muxer.write(packet))), DATAGRAM);
  const log = pino({ level: 'silent' });
  const faults = new FaultLog(log);
  const config = { timestampMode: 'Auto', packetSilenceTimeoutMs: 0, audioMap: [] } as const;
  const read = () => {
    let count = 0;
    const sink = { setTracks: () => {}, write: () => count++ };
    const source = new TsSource({ sink, config, log, faults, onFailure: () => {} });
    for (const datagram of datagrams) source.push(datagram);
    source.flush();
    source.close();
    if (count !== all.length) throw new Error(`${count} frames of ${all.length} were read`);
  };
  return beside(datagrams, { what: 'MPEG-TS to packets per frame', frames: all.length, reached: 16, work: read });
}

/** What goes to an ffmpeg and comes back, and what goes to another node, against a copy of the same bytes. */
function exchanging(clip: Clip): Line[] {
  const frames = toPackets(clip, PLAYS);
  const tracks = [...new Set(frames.map(({ track }) => track))];
  const streams = tracks.filter(isMedia).map(nutStreamOf);
  const writeNut = () => {
    const writer = new NutWriter(streams);
    const parts = [writer.header()];
    for (const { track, pts, key, data } of frames) {
      parts.push(writer.head(tracks.indexOf(track), pts, key !== false, data.length), data);
    }
    return parts;
  };
  const readNut = (chunks: readonly Buffer[]) => {
    let read = 0;
    const reader = new NutReader({ streams: () => undefined, frame: () => read++ });
    for (const chunk of chunks) reader.push(chunk);
    return read;
  };
  const count = frames.length;
  return [
    ...exchange({ what: 'NUT', count, reached: [1.5, 4], write: writeNut, read: readNut }),
    ...exchange({
      what: 'OVT between nodes',
      count,
      reached: [1.7, 12],
      write: () => writeOvt(frames, 'plain'),
      read: readOvt,
    }),
    ...exchange({
      what: 'OVT to other edges',
      count,
      reached: [3.3, 16],
      write: () => writeOvt(frames, 'framed'),
      read: readOvt,
    }),
  ];
}

interface Exchange {
  readonly what: string;
  /** Of frames. */
  readonly count: number;
  /** Times a copy: writing and reading. */
  readonly reached: readonly [number, number];
  write(): Buffer[];
  read(chunks: readonly Buffer[]): number;
}

function exchange({ what, count: frames, reached: [writing, reading], write, read }: Exchange): Line[] {
  const chunks = split(Buffer.concat(write()), CHUNK);
  const readAll = () => {
    const count = read(chunks);
    if (count !== frames) throw new Error(`${count} frames were read`);
  };
  return [
    beside(chunks, { what: `${what}: writing per frame`, frames, reached: writing, work: write }),
    beside(chunks, { what: `${what}: reading per frame`, frames, reached: reading, work: readAll }),
  ];
}

interface Work {
  readonly what: string;
  readonly frames: number;
  readonly reached: number;
  work(): unknown;
}

/** Work on some bytes, in turn with a copy of them to one place. */
function beside(bytes: readonly Buffer[], { what, frames, reached, work }: Work): Line {
  const place = Buffer.alloc(Math.max(...bytes.map(({ length }) => length)));
  const copy = () => {
    for (const each of bytes) each.copy(place);
  };
  const many = (action: () => unknown) => timed(() => void Array.from({ length: TIMES }, action));
  many(work);
  const rounds = Array.from({ length: ROUNDS }, () => [many(work), many(copy)] as const);
  const each = (ms: number) => (ms / frames / TIMES) * 1000;
  return costLine({
    what,
    unit: 'us',
    digits: 2,
    values: rounds.map(([own]) => each(own)),
    references: rounds.map(([, copied]) => each(copied)),
    of: 'a copy',
    reached,
  });
}

function newSender(output: (packet: Buffer) => void): RtpSender {
  return new RtpSender({ payloadType: 100, ssrc: 1234, sequence: 0, output });
}

function packetize(frames: readonly Packet[], sender: RtpSender, plays: number): void {
  const packetizer = createPacketizer('H264');
  for (let play = 0; play < plays; play++) for (const frame of frames) packetizer.packetize(frame, sender);
}

function split(bytes: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
}

/** @returns milliseconds of each round */
function repeat(action: () => void): number[] {
  return Array.from({ length: ROUNDS }, () => timed(action));
}

/** @returns milliseconds of CPU time: whoever else runs here does not count */
function timed(action: () => unknown): number {
  const before = process.threadCpuUsage();
  action();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/** Bodies of RTMP messages as packets of two tracks. */
function toPackets(clip: Clip, plays: number): Packet[] {
  const video = videoTrack({ config: clip.videoConfig.subarray(5), width: 1280, height: 720 });
  const audio = audioTrack({ config: clip.audioConfig.subarray(2) });
  const all: Packet[] = [];
  for (let play = 0; play < plays; play++) {
    for (const { type, time, body } of clip.units) {
      const ms = play * clip.length + time;
      const track = type === 'video' ? video : audio;
      const dts = Math.round((ms * track.timebase.den) / 1000);
      const key = type === 'audio' || (body[0] as number) >> 4 === 1;
      all.push({ track, dts, pts: dts, duration: 0, key, data: body.subarray(type === 'video' ? 5 : 2) });
    }
  }
  return all;
}
