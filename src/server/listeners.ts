import type { IncomingMessage } from 'node:http';
import type { FastifyPluginAsync } from 'fastify';
import type { CertificateStore } from '../tls/certificates.ts';
import type { ServerConfig } from '../config/model.ts';
import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';
import type { AdmissionServices } from './admission.ts';
import type { Closable } from './closable.ts';
import type { ClusterServices } from './cluster.ts';
import type { QualityReports } from '../quality/quality-reports.ts';
import type { OnDumped } from '../publishers/hls/local/own-streams.ts';
import type { PlaylistPublisher } from '../publishers/hls/publisher.ts';
import type { StoredFiles } from '../recording/delivery/stored-files.ts';
import type { Recordings } from '../recording/finished/recordings.ts';
import type { ThumbnailPublisher } from '../publishers/thumbnail/index.ts';
import type { Addresses, PortPair } from './addresses.ts';
import type { StreamServices } from './streams.ts';
import type { MediaHandler } from '../web/pages.ts';
import type { ServedHere } from '../web/streams.ts';
import type { WebrtcMedia } from './webrtc-media.ts';
import type { SignallingHandlers } from '../webrtc/signalling/handler.ts';

/** Context for opening providers and publishers. */
export interface ListenerContext {
  readonly config: ServerConfig;
  readonly registry: Registry;
  readonly nodes: ClusterServices;
  readonly streams: StreamServices;
  readonly admission: AdmissionServices;
  /** Certificates of the virtual hosts. */
  readonly certificates: CertificateStore;
  readonly onDumped: OnDumped;
  /** Finished files of this node. */
  readonly recordings: Recordings;
  readonly stored: StoredFiles;
  /** Reports of players of this node. */
  readonly quality: QualityReports;
  /** Publishers of HLS that are open so far. */
  readonly playlists: readonly PlaylistPublisher[];
  /** Folder of this node alone, for what streams with DVR leave. */
  readonly rewindFolder: string;
  /** Folder of Server.xml, which paths are relative to. */
  readonly folder: string;
  readonly log: Logger;
  /** undefined where WebRTC is off. */
  readonly webrtc: WebrtcMedia | undefined;
}

/** A running provider or publisher, or one of its listeners. */
export interface Listener {
  readonly component: Closable;
  /** Set where it serves a kind of HLS. */
  readonly playlists?: PlaylistPublisher;
  /** Set where it serves thumbnails. */
  readonly thumbnails?: ThumbnailPublisher;
  readonly addresses?: Partial<Addresses>;
  /** HTTP ports and the routes on them. */
  readonly http?: {
    readonly ports: PortPair;
    readonly routes?: FastifyPluginAsync;
    readonly media?: MediaHandler;
    /** Whether a WebSocket is for the routes, and not for signalling. */
    readonly takesSocket?: (request: IncomingMessage) => boolean;
    /** Signalling of WebRTC peers on these ports. */
    readonly handlers?: SignallingHandlers;
    /** Use by the pages on its ports. */
    readonly serves?: ServedHere;
  };
}

/**
 * Opens the configured listeners of one kind, and yields each as soon as it runs, so that it is closed if a later one
 * fails. @throws errors that keep one from starting
 */
export type OpenListeners = (context: ListenerContext) => AsyncIterable<Listener>;
