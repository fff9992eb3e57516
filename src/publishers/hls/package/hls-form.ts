import type { HlsPublisherConfig } from '../../../config/model.ts';
import type { Application } from '../../../core/application.ts';
import type { OutputStream } from '../../../core/output-stream.ts';
import type { FaultLog, Logger } from '../../../log/log.ts';
import type { BreaksOptions } from '../../../packaging/breaks.ts';
import type { KeySchedule } from '../../../packaging/drm/key-schedule.ts';
import type { Resumption } from '../../../packaging/playlist-position.ts';
import type { Histogram } from '../../../lib/histogram.ts';
import type { Media } from '../answer/played-stream.ts';
import type { Rewind } from '../rewind/rewind.ts';
import type { Package } from './package.ts';

export interface PackageOptions {
  readonly application: Application;
  /** Part of all file names, which distinguishes this run of the stream. */
  readonly streamKey: string;
  /** Position to continue from; undefined for a new stream. */
  readonly next: { readonly msn: number; readonly past: Resumption } | undefined;
  /** The past of the stream; undefined where players do not rewind. */
  readonly rewind?: Rewind | undefined;
  /** Keys that encrypt the stream; undefined for a stream in clear. */
  readonly keys?: KeySchedule | undefined;
  /** Options of the tags for breaks and interstitials. */
  readonly breaks?: BreaksOptions | undefined;
  /** Called when there is new state to keep for a node that continues the stream. */
  readonly onProgress: () => void;
  /** Called when players can start with every rendition. */
  readonly onStarted: () => void;
  readonly log: Logger;
  readonly faults: FaultLog;
  /** Seconds from the arrival of a part's last media until the part exists. */
  readonly partDelay?: Histogram | undefined;
}

/** Differences between the kinds of HLS. Streams, players and other nodes are handled alike. */
export interface HlsForm {
  /** Name in statistics, access control, and calls between nodes. */
  readonly kind: 'llhls' | 'hlsv3';
  /** Name in configurations. */
  readonly module: 'llhls' | 'hls';
  /** Serves the requests for MPEG-TS. */
  readonly inTs: boolean;
  /** Supports blocking requests (`_HLS_msn`). */
  readonly directives: boolean;
  config(application: Application): HlsPublisherConfig | undefined;
  addDefaultPlaylist(output: OutputStream): void;
  package(options: PackageOptions): Package;
  /** Tests whether a file name is that of a media playlist or media. */
  isChild(file: string): boolean;
  /** Kind of a media file by its name; undefined for any other name. */
  mediaKind(file: string): Media['kind'] | undefined;
  /** Rendition that a media playlist or media belongs to by its name, as figures of quality have it; undefined for any other name. */
  rendition(file: string): string | undefined;
  /** Name of the master playlist, without extension, that a file name asks for; undefined for any other name. */
  master(file: string): string | undefined;
}
