/** Child process of `viewer-peer.ts`. */
import { servePeers } from './serve-peers.ts';
import { WhepPeer, type Kind, type PeerOptions } from './whep-peer.ts';

/** What a viewer tells of what it receives. */
export type Received =
  | { readonly is: 'packet' | 'report'; readonly kind: Kind; readonly packet: Buffer }
  | { readonly is: 'event'; readonly message: string };

servePeers<PeerOptions, Received>(
  (options, tell) =>
    new WhepPeer({
      ...options,
      onRtp: (kind, packet) => tell({ is: 'packet', kind, packet }),
      onRtcp: (kind, packet) => tell({ is: 'report', kind, packet }),
      onEvent: (message) => tell({ is: 'event', message }),
      onState: (state) => tell({ is: 'state', state }),
    }),
);
