/**
 * Answers of the server as far as pages read them. test/unit/web/pages/answers.test.ts does not compile where an answer
 * lacks a field.
 */
import type { Static } from 'typebox';
import type { StatisticsV1 } from '../../stats/v1.ts';

export type { OutputInfo, StreamInfo } from '../../stats/stream-schema.ts';
export type { TrackInfo } from '../../stats/track-schema.ts';
export type Statistics = Static<typeof StatisticsV1>;

/** A live stream of `-/streams.json`. */
export interface LiveStream {
  readonly app: string;
  readonly stream: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
  readonly relayed?: boolean | undefined;
  readonly viewers: number;
  readonly video?: { codec: string; width: number; height: number; framerate: number } | undefined;
  readonly audio?: { readonly codecs: readonly string[] } | undefined;
  /** Bits per second. */
  readonly bitrate?: number | undefined;
  readonly thumbnail?: string | undefined;
  readonly llhls: readonly string[];
  /** Viewers can go back in LL-HLS. */
  readonly rewinds?: boolean | undefined;
  readonly webrtc: readonly string[];
  /** Labels whose texts come by the data channel of WebRTC. */
  readonly subtitles?: readonly ShownSubtitles[] | undefined;
}

/** Subtitles of a label. */
export interface ShownSubtitles {
  readonly label: string;
  readonly language?: string | undefined;
  readonly isDefault?: boolean | undefined;
  /** Shown also to viewers who asked for none. */
  readonly forced?: boolean | undefined;
}

export interface StreamList {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly restricted: boolean;
  readonly streams: readonly LiveStream[];
  readonly more: boolean;
}

/** An application of `-/publish.json`. */
export interface PublishPlace {
  readonly app: string;
  readonly rtmp: readonly string[];
  readonly srt?: string;
  readonly whip?: string;
}

export interface PublishPlaces {
  /** The port of the page accepts WHIP. */
  readonly here: boolean;
  readonly restricted: boolean;
  readonly applications: readonly PublishPlace[];
}

/** A row of `/v1/cluster/streams`. */
export interface StreamSummary {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
  readonly node: string;
  readonly sourceType: string;
  readonly createdTime: string;
  readonly video?:
    | { codec: string; width: number; height: number; framerate: number; keyFrameInterval: number }
    | undefined;
  readonly audio?: { readonly codec: string } | undefined;
  readonly thumbnail?: string | undefined;
  /** Bits per second. */
  readonly bitrateIn: number;
  readonly bitrateOut: number;
  readonly viewers: number;
  /** Milliseconds. */
  readonly jitter: number;
  readonly avOffset?: { readonly latest?: number; readonly average: number; readonly worst: number };
  readonly lostPackets: number;
  readonly droppedPackets: number;
  readonly srt?: { readonly in?: SrtConnections | undefined; readonly out?: SrtConnections | undefined } | undefined;
}

/** Figures of one SRT connection. */
export interface SrtFigures {
  /** Milliseconds. */
  readonly rtt: number;
  /** Bits per second; 0 while unknown. */
  readonly capacity: number;
  /** Milliseconds. */
  readonly buffer: number;
  readonly packets: number;
  readonly lost: number;
  readonly retransmitted: number;
  readonly dropped: number;
  readonly belated: number;
  readonly undecryptable: number;
}

/** Figures of the SRT connections of a stream in one direction. */
export interface SrtConnections extends SrtFigures {
  readonly connections: number;
}

/** A row of `/v1/cluster/sessions`. */
export interface SessionSummary {
  readonly id: string;
  readonly node: string;
  readonly publisher: string;
  readonly output: string;
  readonly createdTime: string;
  /** Bits per second. */
  readonly bitrateOut: number;
  readonly totalBytesOut: number;
  readonly srt?: SrtFigures | undefined;
}

/** Figures of players' reports, of a stream or one of its renditions. */
export interface QualityFigures {
  readonly reports: number;
  readonly starvations: number;
  readonly droppedFrames: number;
  readonly startupSeconds?: { readonly p95: number } | undefined;
  readonly latencySeconds?: { readonly average: number } | undefined;
  readonly bufferSeconds?: { readonly average: number } | undefined;
  readonly bitrateRatio?: { readonly average: number } | undefined;
}

/** A row of `/v1/cluster/quality`. */
export interface QualitySummary extends QualityFigures {
  readonly stream: string;
  readonly renditions: readonly (QualityFigures & { readonly rendition: string })[];
}

/** A row of `/v1/cluster/nodes`. */
export interface NodeInfo {
  readonly id: string;
  readonly state: 'ready' | 'draining' | 'silent' | 'lost';
  readonly address?: string;
  readonly addresses: Readonly<Record<string, readonly string[]>>;
  readonly version: string;
  /** Milliseconds. */
  readonly uptime: number;
  /** 0 idle to 1 busy. */
  readonly load: number;
  readonly streams: number;
  readonly sessions: number;
  readonly configDiffers: boolean;
}

/** A row of `/v1/cluster/events`; its other fields are those of the line of the log. */
export interface LoggedEvent {
  readonly time: string;
  readonly node: string;
  readonly level: string;
  readonly event: string;
  readonly msg: string;
  readonly stream?: string;
}

export interface ScheduledChannel {
  readonly fallbackProgram?: { readonly items: readonly object[] };
  readonly programs: readonly { readonly name: string; readonly scheduled: string }[];
  readonly currentProgram: {
    readonly state: string;
    readonly name?: string;
    readonly currentItem?: { readonly url: string; readonly currentPosition: number };
  };
}

export interface MultiplexChannel {
  readonly outputStream: { readonly name: string };
  readonly sourceStreams: readonly { readonly url: string }[];
  readonly state: string;
  readonly pullingMessage?: string;
}

interface ChannelName {
  readonly vhost: string;
  readonly app: string;
  readonly name: string;
}

/** A row of `/v1/cluster/channels`. */
export type ChannelRow =
  | (ChannelName & { readonly kind: 'scheduledChannels'; readonly channel?: ScheduledChannel })
  | (ChannelName & { readonly kind: 'multiplexChannels'; readonly channel?: MultiplexChannel });

interface Task {
  readonly vhost: string;
  readonly app: string;
  readonly id: string;
  readonly stream: { readonly name: string };
  readonly state: string;
  readonly reason?: string;
  readonly isConfig: boolean;
}

export interface RecordTask extends Task {
  readonly filePath?: string;
  readonly outputFilePath?: string;
  /** Milliseconds. */
  readonly totalRecordTime?: number;
  readonly totalRecordBytes?: number;
}

/** A finished file of a recording, or an HLS dump. */
export interface RecordedFile {
  readonly type: 'file' | 'dump';
  readonly id: string;
  readonly recordId: string;
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
  readonly node: string;
  readonly path: string;
  readonly startTime: string;
  readonly finishTime: string;
  /** Seconds. */
  readonly duration: number;
  /** Bytes. */
  readonly size: number;
  readonly container: string;
  readonly tracks?: readonly { readonly type: string; readonly codec: string }[];
  readonly isLocal: boolean;
  readonly upload?: { readonly state: 'waiting' | 'uploaded' | 'failed' };
}

export interface RecordedPage {
  readonly recordings: readonly RecordedFile[];
  readonly cursor?: string;
  readonly silentNodes?: readonly string[];
}

export interface PushTask extends Task {
  readonly url: string;
  readonly totalsentBytes: number;
}

export interface ReadOnlyLink {
  readonly path: string;
}
