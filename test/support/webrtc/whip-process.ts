/** Child process of `publisher-peer.ts`. */
import { servePeers } from './serve-peers.ts';
import { WhipPeer, type WhipPeerOptions } from './whip-peer.ts';

servePeers<WhipPeerOptions>((options, tell) => {
  const media = options.media.map(({ track, frames }) => ({
    // buffers come as plain arrays of bytes
    track: 'config' in track && track.config !== undefined ? { ...track, config: Buffer.from(track.config) } : track,
    frames: frames.map((frame) => ({ ...frame, data: Buffer.from(frame.data) })),
  }));
  return new WhipPeer({ ...options, media }, (state) => tell({ is: 'state', state }));
});
