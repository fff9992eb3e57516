import type { FastifyPluginAsync } from 'fastify';
import type { CertificateStore } from '../tls/certificates.ts';
import type { ServerConfig } from '../config/model.ts';
import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';
import type { Neighbours } from './neighbours.ts';
import type { Part } from './part.ts';
import type { PlaylistPublisher } from '../publishers/hls/publisher.ts';
import type { ThumbnailPublisher } from '../publishers/thumbnail/index.ts';
import type { Addresses, PortPair } from './summary.ts';
import type { ServedHere } from '../web/streams.ts';
import type { WebrtcMedia } from './webrtc-media.ts';
import type { Entrances } from '../webrtc/signalling/entrance.ts';

/** What the ways into this server and out of it are opened with. */
export interface DoorContext {
  readonly config: ServerConfig;
  readonly registry: Registry;
  readonly neighbours: Neighbours;
  /** Those of the virtual hosts. */
  readonly certificates: CertificateStore;
  readonly log: Logger;
  /** Undefined where WebRTC is off. */
  readonly webrtc: WebrtcMedia | undefined;
}

/** A provider or publisher that runs, or one listener of it. */
export interface Door {
  readonly part: Part;
  /** The same, where it serves a kind of HLS. */
  readonly playlists?: PlaylistPublisher;
  /** The same, where it has thumbnails. */
  readonly thumbnails?: ThumbnailPublisher;
  /** Where it listens. */
  readonly addresses?: Partial<Addresses>;
  /** What it serves over HTTP, and on which ports. */
  readonly http?: {
    readonly ports: PortPair;
    readonly routes?: FastifyPluginAsync;
    /** Where WebRTC peers come in. */
    readonly entrances?: Entrances;
    /** What the pages on its ports use it for. */
    readonly serves?: ServedHere;
  };
}

/** Opens one kind of door, where it is configured; each is there to be closed as soon as it runs. @throws what keeps it from starting */
export type OpenDoors = (context: DoorContext) => AsyncIterable<Door>;
