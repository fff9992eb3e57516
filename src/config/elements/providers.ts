import Type from 'typebox';
import {
  atLeastOne,
  choice,
  contained,
  decimal,
  flag,
  integer,
  optional,
  parsed,
  repeated,
  section,
  text,
} from '../blocks.ts';
import { parseUdpPorts } from '../udp-ports.ts';
import { crossDomains, streamMapFile } from './shared.ts';

const common = () => ({
  /** 0: no limit. */
  maxConnection: integer(0),
  timestampMode: choice(['Auto', 'ZeroBased', 'Original'], 'Auto'),
});

/** Milliseconds without a packet after which the stream ends; 0: never. */
const silence = (value = 0) => ({ packetSilenceTimeoutMs: integer(value) });

const audioMap = () =>
  contained(
    Type.Object({
      name: text(),
      language: Type.Optional(text()),
      characteristics: Type.Optional(text()),
    }),
    'Item',
  );

const Id3v2 = Type.Object({
  eventType: choice(['video', 'audio', 'event'], 'event'),
  frameType: parsed('a frame of ID3v2: TXXX, PRIV, or T with three letters or digits', (given) =>
    /^(PRIV|T[A-Z0-9]{3})$/i.test(given) ? given.toUpperCase() : undefined,
  ),
  info: text({ default: '' }),
  data: text({ default: '' }),
});

const BroadcastVideo = Type.Object({
  height: integer(undefined, { min: 64, max: 8192 }),
  /** Bits per second. */
  bitrate: integer(undefined, { min: 1000 }),
  /** At most so many frames per second; 0: as many as the encoder has. */
  framerate: decimal(0, { max: 240 }),
  codec: choice(['h264', 'h265', 'av1'], 'h264'),
  encoder: text({ default: '' }),
});

/** Kept as text, `4000/udp` or `239.1.2.3:4000/udp`: the management API shows it. */
const udpPorts = () => parsed('a list of UDP ports (1..65535)', (given) => (parseUdpPorts(given) ? given : undefined));

/** Providers of an application. One that is absent is off. */
export const Providers = section({
  rtmp: optional({
    ...common(),
    ...silence(),
    firstMediaWaitTimeoutMs: integer(0),
    blockDuplicateStreamName: flag(true),
    passthroughOutputProfile: flag(false),
    eventGenerator: optional({
      event: repeated(Type.Object({ trigger: text(), hlsid3v2: { ...Id3v2, xml: 'HLSID3v2' } })),
    }),
    enhancedBroadcasting: optional({
      video: atLeastOne(repeated(BroadcastVideo)),
      /** Bits per second. */
      audioBitrate: integer(160_000, { min: 32_000, max: 256_000 }),
      /** Seconds; 0: the encoder decides. */
      keyFrameInterval: integer(2, { max: 10 }),
    }),
  }),
  srt: optional({ ...common(), ...silence(), blockDuplicateStreamName: flag(true), audioMap: audioMap() }),
  mpegts: optional({
    ...common(),
    ...silence(1500),
    streams: contained(Type.Object({ name: text(), port: udpPorts() }), 'Stream', { xml: 'StreamMap' }),
    audioMap: audioMap(),
    packetReordering: flag(false),
  }),
  rtspPull: optional({ ...common(), blockDuplicateStreamName: flag(true) }),
  rtmpPull: optional({ ...common(), blockDuplicateStreamName: flag(true) }),
  rtsp: optional({ ...common(), ...silence(), blockDuplicateStreamName: flag(true) }),
  ovt: optional(common()),
  webrtc: optional({
    ...common(),
    ...silence(),
    timeout: integer(30_000, { min: 1 }),
    firInterval: integer(3000),
    rtcpBasedTimestamp: flag(false),
    rtx: section({ enable: flag(false), maxHoldMs: integer(400) }),
    crossDomains: crossDomains(),
  }),
  schedule: optional({
    ...common(),
    mediaRootDir: text({ default: '' }),
    scheduleFilesDir: text({ default: '' }),
  }),
  multiplex: optional({ ...common(), ...silence(), muxFilesDir: text({ default: '' }) }),
  file: optional({ ...common(), streamMap: streamMapFile() }),
});
