/** Child process of `viewer-peer.ts`. */
import { servePeers } from './serve-peers.ts';
import { WhepPeer, type Kind, type PeerOptions } from './whep-peer.ts';

/** What a viewer tells of what it receives. */
export interface Received {
  readonly is: 'packet' | 'report';
  readonly kind: Kind;
  readonly packet: Buffer;
}

servePeers<PeerOptions, Received>(
  (options, tell) =>
    new WhepPeer({
      ...options,
      onRtp: (kind, packet) => tell({ is: 'packet', kind, packet }),
      onRtcp: (kind, packet) => tell({ is: 'report', kind, packet }),
      onState: (state) => tell({ is: 'state', state }),
    }),
);
