import Type, { type Static } from 'typebox';
import type { AvOffsetFigures } from '../core/av-offset.ts';
import type { Flow } from '../core/counters.ts';
import { keyFrameSeconds } from '../core/meter.ts';
import type { Registry } from '../core/registry.ts';
import type { InputStream } from '../core/input-stream.ts';
import { localTime } from '../lib/local-time.ts';
import { joinSrt, srtOf, SrtSummary } from './link-summary.ts';

const Video = Type.Object({
  codec: Type.String(),
  width: Type.Integer(),
  height: Type.Integer(),
  framerate: Type.Number({ description: 'Frames per second in the last second' }),
  keyFrameInterval: Type.Number({
    description:
      'Seconds between the last two key frames, or since the last one where that is longer already; 0 while unknown',
  }),
  hasBframes: Type.Boolean(),
  keyFrames: Type.Union([Type.Literal('closed'), Type.Literal('open'), Type.Literal('none')], {
    description:
      'Whether key frames are IDR pictures (closed) or recovery points of open GOPs and of gradual refreshes, at which browsers do not begin (open); none until one has come',
  }),
});

const Audio = Type.Object({ codec: Type.String(), samplerate: Type.Integer(), channels: Type.Integer() });

/** Summary of a live input stream, or of a node's relay of it. */
export const StreamSummary = Type.Object({
  vhost: Type.String(),
  app: Type.String(),
  stream: Type.String(),
  node: Type.String({ description: 'Which node has it' }),
  relay: Type.Boolean({ description: 'The node has it from another one' }),
  sourceType: Type.String(),
  createdTime: Type.String(),
  video: Type.Optional(Video),
  audio: Type.Optional(Audio),
  outputs: Type.Array(Type.String()),
  thumbnail: Type.Optional(Type.String({ description: 'The first of its outputs that has pictures' })),
  bitrateIn: Type.Integer({ description: 'Bits per second' }),
  bitrateOut: Type.Integer({ description: 'Bits per second' }),
  viewers: Type.Integer(),
  jitter: Type.Number({
    description: 'How unevenly packets arrive, in milliseconds: the interarrival jitter of RFC 3550 of the worst track',
  }),
  avOffset: Type.Optional(
    Type.Object(
      { latest: Type.Optional(Type.Number()), average: Type.Number(), worst: Type.Number() },
      {
        description:
          'By how much the timestamps of audio are later than those of the video that arrives with it, in milliseconds: in the last two seconds with both, on average, and at worst',
      },
    ),
  ),
  lostPackets: Type.Integer({ description: 'Packets of the input that never came, as its transport tells' }),
  droppedPackets: Type.Integer({
    description: 'Packets dropped because viewers, encoders or recordings were too slow',
  }),
  srt: Type.Optional(SrtSummary),
});
export type StreamSummary = Static<typeof StreamSummary>;

/** Time without traffic after which throughput is 0. */
const SILENT_MS = 3000;

/** Names that all streams to list have. */
export type StreamFilter = Partial<Pick<StreamSummary, 'vhost' | 'app' | 'stream'>>;

/** Summaries of the streams that a node has or relays. @param node id of that node */
export function streamSummaries(registry: Registry, node: string, wanted: StreamFilter = {}): StreamSummary[] {
  const rows: StreamSummary[] = [];
  for (const vhost of registry.vhosts.values()) {
    if ((wanted.vhost ?? vhost.name) !== vhost.name) continue;
    for (const application of vhost.applications.values()) {
      if ((wanted.app ?? application.name) !== application.name) continue;
      for (const input of [...application.streams(), ...application.elsewhere()])
        if ((wanted.stream ?? input.name) === input.name)
          rows.push({ vhost: vhost.name, app: application.name, node, ...summary(input) });
    }
  }
  return rows;
}

/** Joins rows to one for each stream: that of its owner, with the viewers of all nodes. */
export function joinSummaries(rows: readonly StreamSummary[]): StreamSummary[] {
  const streams = new Map<string, StreamSummary>();
  for (const row of [...rows].sort((a, b) => Number(a.relay) - Number(b.relay))) {
    const key = JSON.stringify([row.vhost, row.app, row.stream]);
    const owner = streams.get(key);
    if (owner === undefined) streams.set(key, row);
    else {
      const { viewers, bitrateOut, droppedPackets } = owner;
      const srt = joinSrt(owner.srt, row.srt);
      streams.set(key, {
        ...owner,
        viewers: viewers + row.viewers,
        bitrateOut: bitrateOut + row.bitrateOut,
        droppedPackets: droppedPackets + row.droppedPackets,
        ...(srt && { srt }),
      });
    }
  }
  return [...streams.values()];
}

function summary(input: InputStream): Omit<StreamSummary, 'vhost' | 'app' | 'node'> {
  const { tracks, counters, source, arrival } = input;
  const [video] = tracks.filter((track) => track.type === 'video').sort((a, b) => b.height - a.height);
  const audio = tracks.find((track) => track.type === 'audio');
  const measured = video && input.measured(video.id);
  const framerate = measured?.framerateLatest || measured?.framerateAvg || video?.framerate || 0;
  const srt = srtOf(counters);
  const avOffset = arrival.avOffset();
  const pictured = [...input.outputs.values()].find((output) => output.tracks.some(({ type }) => type === 'image'));
  return {
    stream: input.name,
    relay: input.isRelay,
    sourceType: source.type,
    createdTime: localTime(input.createdTime.getTime()),
    ...(video && {
      video: {
        codec: video.codec,
        width: video.width,
        height: video.height,
        framerate: rounded(framerate),
        keyFrameInterval: measured === undefined ? 0 : rounded(keyFrameSeconds(measured)),
        hasBframes: measured?.hasBframes ?? false,
        keyFrames: measured?.keyFrames ?? 'none',
      },
    }),
    ...(audio && { audio: { codec: audio.codec, samplerate: audio.samplerate, channels: audio.channels } }),
    outputs: [...input.outputs.keys()],
    ...(pictured && { thumbnail: pictured.name }),
    bitrateIn: rate(counters.in),
    bitrateOut: rate(counters.out),
    // recordings and pushes count as connections, but are no viewers
    viewers: counters.totalConnections - counters.publishers.file - counters.publishers.push,
    jitter: rounded(Math.max(0, ...tracks.map(({ id }) => arrival.jitter(id)))),
    ...(avOffset && { avOffset: roundedFigures(avOffset) }),
    lostPackets: counters.lostPackets,
    droppedPackets: counters.droppedPackets,
    ...(srt && { srt }),
  };
}

/** Bits per second of a flow; 0 without recent traffic. */
export function rate({ avgThroughput, lastTime }: Flow): number {
  return Date.now() - lastTime > SILENT_MS ? 0 : avgThroughput;
}

function roundedFigures({ latest, average, worst }: AvOffsetFigures): NonNullable<StreamSummary['avOffset']> {
  return { ...(latest !== undefined && { latest: rounded(latest) }), average: rounded(average), worst: rounded(worst) };
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
