import Type from 'typebox';
import {
  choice,
  contained,
  decimal,
  flag,
  inert,
  integer,
  optional,
  repeated,
  section,
  text,
  type Fail,
} from '../blocks.ts';
import { Drm } from './drm.ts';
import { byteSize, crossDomains, httpUrl, httpUrlText, streamMapFile } from './shared.ts';

const common = () => ({
  appWorkerCount: inert(integer(1)),
  streamWorkerCount: inert(integer(8)),
  delayBufferTimeMs: integer(0, { max: 60_000 }),
  /** 0: no limit. */
  maxConnection: integer(0),
});

const played = () => ({
  ...common(),
  /** Limit over all nodes together. */
  clusterMaxConnection: integer(0),
});

/** Seconds of `max-age`; 0: `no-cache, no-store`; -1: no header. */
const age = (value?: number) => integer(value, { min: -1, max: 0x7fff_ffff });

const dump = () =>
  Type.Object({
    id: Type.Optional(text()),
    enable: flag(true),
    targetStreamName: text(),
    playlists: contained(text(), 'Playlist'),
    outputPath: text(),
    infoFile: Type.Optional(text()),
    userData: Type.Optional(text()),
  });

/** Limits of what is recorded or dumped: seconds, and bytes. */
const limits = () => ({
  deleteAfter: Type.Optional(integer(undefined, { min: 1 })),
  maxTotalSize: Type.Optional(byteSize()),
});

/** Settings common to HLS and LL-HLS. Durations in seconds. */
const hls = () => ({
  ...played(),
  segmentDuration: decimal(10, { min: 0.5, max: 3600 }),
  segmentCount: integer(5, { min: 3, max: 10_000 }),
  originMode: flag(false),
  serverTimeBasedSegmentNumbering: flag(false),
  createDefaultPlaylist: flag(true),
  dvr: optional({
    enable: flag(false),
    tempStoragePath: text({ default: '/tmp/ll_hls_dvr' }),
    maxDuration: integer(3600),
    eventPlaylistType: flag(false),
    minFreeSpace: Type.Optional(byteSize()),
  }),
  cacheControl: section({
    masterPlaylistMaxAge: age(0),
    chunklistMaxAge: Type.Optional(age()),
    chunklistWithDirectivesMaxAge: age(60),
    segmentMaxAge: age(-1),
    partialSegmentMaxAge: age(-1),
  }),
  /** Query parameters added to every request for a master playlist. */
  defaultQueryString: contained(Type.Object({ key: text(), value: text({ default: '' }) }), 'Query'),
  dumps: contained(dump(), 'Dump'),
  dumpRetention: optional(limits()),
  /** For breaks that SCTE-35 begins. */
  interstitials: optional({
    assetList: httpUrlText(),
    snap: repeated(choice(['OUT', 'IN'])),
    restrict: repeated(choice(['SKIP', 'JUMP'])),
  }),
  crossDomains: crossDomains(),
});

interface Llhls {
  chunkDuration: number;
  segmentDuration: number;
  partHoldBack: number;
}

const HOLD_BACK_CHUNKS = 3;

const Llhls = optional(
  {
    ...hls(),
    chunkDuration: decimal(0.5, { min: 0.05, max: 60 }),
    /** 0: three chunks, as RFC 8216bis recommends (at least two are required). */
    partHoldBack: decimal(0),
    enablePreloadHint: flag(true),
    drm: Drm,
  },
  {
    rule: ({ chunkDuration: chunk, segmentDuration: segment }: Llhls, fail: Fail) => {
      if (chunk > segment) fail(['chunkDuration'], `${chunk} is longer than SegmentDuration, ${segment}`);
    },
    complete: (llhls: Llhls) => {
      if (llhls.partHoldBack === 0) llhls.partHoldBack = HOLD_BACK_CHUNKS * llhls.chunkDuration;
    },
  },
);

/** Maximum of the RTP extension: 12 bits of 10 ms. */
const MAX_PLAYOUT_DELAY_MS = 40_950;

const PlayoutDelay = optional(
  {
    min: integer(0, { max: MAX_PLAYOUT_DELAY_MS }),
    max: integer(MAX_PLAYOUT_DELAY_MS, { max: MAX_PLAYOUT_DELAY_MS }),
  },
  {
    rule: ({ min, max }: { min: number; max: number }, fail: Fail) => {
      if (min > max) fail(['min'], `${min} is more than Max, ${max}`);
    },
  },
);

interface RecordUpload {
  endpoint?: string;
  accessKeyId?: string;
  secretAccessKey?: string;
  forcePathStyle?: boolean;
}

const RecordUpload = optional(
  {
    /** Default: Amazon's own. */
    endpoint: Type.Optional(httpUrl()),
    region: text({ default: 'us-east-1' }),
    bucket: text(),
    /** Key prefix before the path of a file below RootPath; may hold the macros of recordings. */
    prefix: text({ default: '' }),
    /** Both keys, or else what the environment of the process offers: AWS_ACCESS_KEY_ID, a profile, the role of a machine. */
    accessKeyId: Type.Optional(text()),
    secretAccessKey: Type.Optional(text()),
    /** Whether the bucket is in the path of URLs, not in the host name: by default if there is an Endpoint. */
    forcePathStyle: Type.Optional(flag()),
    /** Deletes the file after the storage has confirmed the checksum of each part. */
    deleteLocal: flag(false),
  },
  {
    rule: ({ accessKeyId, secretAccessKey }: RecordUpload, fail: Fail) => {
      if (accessKeyId !== undefined && secretAccessKey === undefined)
        fail(['secretAccessKey'], 'is missing: AccessKeyId is configured');
      if (accessKeyId === undefined && secretAccessKey !== undefined)
        fail(['accessKeyId'], 'is missing: SecretAccessKey is configured');
    },
    complete: (upload: RecordUpload) => {
      upload.forcePathStyle ??= upload.endpoint !== undefined;
    },
  },
);

/** Uploads and notifications of finished recordings. */
const Record = optional({
  /** URL called for each finished file, and after each upload. */
  webhook: optional({
    controlServerUrl: httpUrl(),
    secretKey: Type.Optional(text()),
    /** Milliseconds, as in AdmissionWebhooks. */
    timeout: integer(3000, { min: 1, max: 600_000 }),
  }),
  upload: RecordUpload,
});

/** Publisher modules of an application. One that is absent is off. */
export const Publishers = section({
  ...played(),
  webrtc: optional({
    ...played(),
    timeout: integer(30_000, { min: 1 }),
    rtx: flag(false),
    ulpfec: flag(false),
    jitterBuffer: flag(false),
    createDefaultPlaylist: flag(true),
    bandwidthEstimation: choice(['All', 'REMB', 'TransportCC'], 'All'),
    playoutDelay: PlayoutDelay,
    crossDomains: crossDomains(),
  }),
  llhls: Llhls,
  hls: optional(hls()),
  file: optional({
    ...common(),
    rootPath: Type.Optional(text()),
    filePath: Type.Optional(text()),
    infoPath: Type.Optional(text()),
    ...limits(),
    force: Type.Optional(flag()),
    standby: Type.Optional(flag()),
    record: Record,
    streamMap: streamMapFile(),
  }),
  push: optional(
    {
      ...common(),
      streamMap: streamMapFile(),
      connectionTimeout: integer(5000),
      sendTimeout: integer(2000),
      standby: Type.Optional(flag()),
    },
    { aliases: ['rtmpPush', 'srtPush', 'mpegtsPush'] },
  ),
  thumbnail: optional({ ...played(), crossDomains: crossDomains() }),
  playback: optional({ ...played(), crossDomains: crossDomains() }),
  srt: optional(played()),
  rtsp: optional(played()),
  rtmp: optional(played()),
  flv: optional({ ...played(), crossDomains: crossDomains() }),
  ovt: optional(played()),
});
