import { PeerProcess, RemotePeer, type Change } from './remote-peer.ts';
import type { WhipPeerOptions } from './whip-peer.ts';

const peers = new PeerProcess<WhipPeerOptions>(new URL('./whip-process.ts', import.meta.url));

/** A `WhipPeer` in a process of its own. */
export class PublisherPeer extends RemotePeer<WhipPeerOptions> {
  constructor(options: WhipPeerOptions) {
    super(peers, options);
  }

  /** Publishes to a WHIP endpoint. @throws Error for any status but 201 */
  publish(url: string, change?: Change, changeOffer?: Change): Promise<Response> {
    return this.post(url, change, changeOffer);
  }
}
