import type { ApplicationConfig } from '../config/model.ts';
import type { Logger } from '../log/log.ts';
import type { RtspRequest } from '../protocols/rtsp/message.ts';
import type { RtspAnswer, RtspServerConnection } from '../protocols/rtsp/server-connection.ts';
import type { Peer } from '../protocols/tcp.ts';
import type { RtspAdmission } from './admission.ts';
import type { Datagrams } from './datagram-ports.ts';

export type RtspHandler = (request: RtspRequest) => RtspAnswer | Promise<RtspAnswer>;

/** The session of a client, for what the client does in it. */
export interface RtspLink {
  readonly peer: Peer;
  readonly connection: RtspServerConnection;
  /** The client uses TLS. */
  readonly isSecure: boolean;
  /** Undefined where media comes and goes in the connection alone. */
  readonly datagrams: Datagrams | undefined;
  readonly admission: RtspAdmission;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
  /** Names the client. */
  readonly log: Logger;
  /** Sets how long the client may be silent, in milliseconds. */
  watch(ms: number): void;
  /** A packet came from the client by another way than the connection. */
  heard(): void;
  /** The client plays or publishes: it is none of those that the server waits for. */
  serves(): void;
  /** Ends the connection. Idempotent. @param level how the reason is logged */
  close(reason: string, level?: 'info' | 'warn'): void;
}

/** Side of a session that its client uses: to play a stream, or to publish one. */
export interface RtspPart {
  /** Id of the session (RFC 2326 section 3.4); undefined until a track is set up. */
  readonly session: string | undefined;
  /** Handlers of `SETUP`, `TEARDOWN` and of the methods of its service. */
  readonly methods: Readonly<Record<string, RtspHandler>>;
  /** The client may be silent for longer. */
  readonly mayBeSilent: boolean;
  /** Names the stream as well, where there is one. */
  readonly log: Logger;
  /** How the end of the session is logged, apart from warnings. */
  readonly end: { readonly level: 'debug' | 'info'; readonly fields: object };
  /** Takes a packet between the requests. */
  media(channel: number, data: Buffer): void;
  /** Looks after the client, once a second. */
  check(): void;
  /** Idempotent. */
  close(reason: string): void;
}

/** Serves clients that play, or those that publish. */
export interface RtspService {
  readonly direction: 'incoming' | 'outgoing';
  /** Methods that begin with it, in the order of their use. */
  readonly methods: readonly string[];
  /** Whether an application has the module. */
  isUsedBy(config: ApplicationConfig): boolean;
  open(link: RtspLink): RtspPart;
}
