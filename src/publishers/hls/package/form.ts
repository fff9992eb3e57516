import type { HlsPublisherConfig } from '../../../config/model.ts';
import type { Application } from '../../../core/application.ts';
import type { OutputStream } from '../../../core/stream.ts';
import type { FaultLog, Logger } from '../../../log/log.ts';
import type { Past } from '../../../packaging/past.ts';
import type { Histogram } from '../../../lib/histogram.ts';
import type { Media } from '../answer/answer.ts';
import type { Package } from './package.ts';

/** What a stream is packaged with. */
export interface PackageOptions {
  readonly application: Application;
  /** In the names of all files: what tells this run of the stream from others. */
  readonly streamKey: string;
  /** Where the stream goes on that this one continues. */
  readonly next: { readonly msn: number; readonly past: Past } | undefined;
  /** Called when there is something new to be kept for who continues the stream. */
  readonly onProgress: () => void;
  /** Called when all renditions have something for players to begin with. */
  readonly onStarted: () => void;
  readonly log: Logger;
  readonly faults: FaultLog;
  /** Gets the seconds from when the media at a part's end had arrived until the part was there. */
  readonly partDelay?: Histogram | undefined;
}

/** What is particular to a kind of HLS. Streams, players and other nodes are handled alike for all of them. */
export interface HlsForm {
  /** In statistics, for access control, and in calls between nodes. */
  readonly kind: 'llhls' | 'hlsv3';
  /** In configurations. */
  readonly module: 'llhls' | 'hls';
  /** It is what players ask for who ask for MPEG-TS. */
  readonly inTs: boolean;
  /** Players may ask for what is to come (`_HLS_msn`). */
  readonly directives: boolean;
  /** Ends of the names of media. */
  readonly media: string;
  config(application: Application): HlsPublisherConfig | undefined;
  addDefaultPlaylist(output: OutputStream): void;
  package(options: PackageOptions): Package;
  /** Whether a file's name is that of a child of a master playlist. */
  isChild(file: string): boolean;
  /** What a file of media is, by its name; undefined for one that has no such name. */
  mediaKind(file: string): Media['kind'] | undefined;
  /** The file name of a master playlist, without extension, that a file stands for; undefined for any other file. */
  master(file: string): string | undefined;
}
