import type { types } from 'mediasoup';
import type { CrossDomainsConfig, WebrtcBindConfig } from '../../config/model.ts';
import type { HostCandidate } from '../candidate.ts';
import type { RemoteDescription } from '../remote-description.ts';
import type { PeerRequest } from './request.ts';

/** A peer's session, as far as signalling deals with it. */
export interface PeerSession {
  readonly closed: boolean;
  readonly media: readonly { readonly kind: string; readonly mid: string }[];
  readonly candidates: readonly HostCandidate[];
  /** New ICE credentials, for a peer whose network changed. @throws mediaUnavailable when the session is closed */
  restartIce(): Promise<types.IceParameters>;
  /** Idempotent. */
  close(reason: string): void;
}

/** A session, and what this server describes of it: the answer to a peer's offer, or an offer. */
export interface Described {
  readonly session: PeerSession;
  readonly sdp: string;
}

/** The answer to a peer's offer. */
export interface Answered extends Described {
  /** The peer's ICE user name fragment. */
  readonly remoteUfrag: string;
}

/**
 * Why a session ends: `lost` with its media worker, after which the peer can come back at once; `expired` because its
 * admission ends, of which the peer is told; `over` for any other reason.
 */
export type SessionEnd = 'over' | 'lost' | 'expired';

/** What a session that was offered has to say. */
export interface Hearer {
  /** Something for the peer to know. */
  notify(message: object): void;
  closed(reason: string, end: SessionEnd): void;
}

/** A session that this server offers. */
export interface Offered extends Described {
  /** @throws KilnError when nothing can come of it */
  answer(answer: RemoteDescription): Promise<void>;
  /** Another rendition, for a peer that has one. */
  changeRendition(name: string | undefined, auto: boolean | undefined): Promise<void>;
}

/** Where peers who signal come in: one for those who play, one for those who publish. */
export interface Entrance {
  /** What peers are told of STUN and TURN servers comes from here. */
  readonly bind: WebrtcBindConfig;
  /** What an application allows to pages of other origins; undefined where it says nothing. */
  crossDomains(hostName: string, app: string): CrossDomainsConfig | undefined;
  /**
   * Answers a peer's offer.
   * @param sdp is read when the peer is admitted
   * @param onClose called once when the session ends
   * @throws KilnError
   */
  answer(request: PeerRequest, sdp: string, onClose: () => void): Promise<Answered>;
  /** Makes an offer to a peer. @throws KilnError */
  offer(request: PeerRequest, hearer: Hearer): Promise<Offered>;
}

/** What is at one port: at least one. */
export interface Entrances {
  readonly play?: Entrance;
  readonly publish?: Entrance;
}
