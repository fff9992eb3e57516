import type { types } from 'mediasoup';
import type { CrossDomainsConfig, WebrtcBindConfig } from '../../config/model.ts';
import type { HostCandidate } from '../candidate.ts';
import type { RemoteDescription } from '../remote-description.ts';
import type { PeerRequest } from './request.ts';

/** Peer's session, as signalling uses it. */
export interface PeerSession {
  readonly closed: boolean;
  readonly media: readonly { readonly kind: string; readonly mid: string }[];
  readonly candidates: readonly HostCandidate[];
  /** Makes new ICE credentials, for a peer whose network changed. @throws mediaUnavailable when the session is closed */
  restartIce(): Promise<types.IceParameters>;
  /** Idempotent. */
  close(reason: string): void;
}

/** Session, and the SDP that this server made for it: an offer or an answer. */
export interface Described {
  readonly session: PeerSession;
  readonly sdp: string;
}

export interface Answered extends Described {
  /** The peer's ICE user name fragment. */
  readonly remoteUfrag: string;
}

/**
 * Reason for the end of a session: `lost` when its media worker died and the peer can reconnect at once; `expired` when
 * its admission ended, of which the peer is notified; `over` otherwise.
 */
export type SessionEnd = 'over' | 'lost' | 'expired';

/** Receives the events of an offered session. */
export interface SessionObserver {
  /** Sends a message to the peer. */
  notify(message: object): void;
  closed(reason: string, end: SessionEnd): void;
}

/** Session that this server offered. */
export interface Offered extends Described {
  /** @throws KilnError when the answer cannot be used */
  answer(answer: RemoteDescription): Promise<void>;
  /** Changes the rendition of a viewer. */
  changeRendition(name: string | undefined, auto: boolean | undefined): Promise<void>;
}

/** Settings of an application for WebRTC, in one direction. */
export interface ModuleSettings {
  readonly crossDomains?: CrossDomainsConfig | undefined;
}

/** Creates sessions for peers that signal: one implementation for viewers, one for publishers. */
export interface SignallingHandler {
  /** Has the STUN and TURN servers for peers. */
  readonly bind: WebrtcBindConfig;
  /** Settings of an application for this direction; undefined where it does not have it, or does not exist. */
  settings(hostName: string, app: string): ModuleSettings | undefined;
  /**
   * Answers a peer's offer.
   * @param sdp parsed only after the peer is admitted
   * @param onClose called once when the session ends
   * @throws KilnError
   */
  answer(request: PeerRequest, sdp: string, onClose: () => void): Promise<Answered>;
  /** Makes an offer to a peer. @throws KilnError */
  offer(request: PeerRequest, observer: SessionObserver): Promise<Offered>;
}

/** Directions that one port serves: at least one. */
export interface SignallingHandlers {
  readonly play?: SignallingHandler;
  readonly publish?: SignallingHandler;
}
