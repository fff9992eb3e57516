/** Child process of `viewer-peer.ts`: holds any number of peers, ends when its parent does. */
import { WhepPeer, type Kind, type PeerOptions } from './whep-peer.ts';

export type ToPeer = { readonly id: number } & (
  | { readonly do: 'offer'; readonly options: PeerOptions }
  | { readonly do: 'answerTo' | 'answer'; readonly sdp: string }
  | { readonly do: 'close' }
);

export type FromPeer = { readonly id: number } & (
  | { readonly is: 'local'; readonly sdp: string }
  | { readonly is: 'state'; readonly state: string }
  | { readonly is: 'packet'; readonly kind: Kind; readonly packet: Buffer }
);

const peers = new Map<number, WhepPeer>();

function tell(message: FromPeer): void {
  process.send?.(message);
}

function create(id: number, options: PeerOptions = {}): WhepPeer {
  const peer = new WhepPeer({
    ...options,
    onRtp: (kind, packet) => tell({ id, is: 'packet', kind, packet }),
    onState: (state) => tell({ id, is: 'state', state }),
  });
  peers.set(id, peer);
  return peer;
}

process.on('message', async (message: ToPeer) => {
  const { id } = message;
  if (message.do === 'offer') {
    tell({ id, is: 'local', sdp: await create(id, message.options).offer() });
  } else if (message.do === 'answerTo') {
    tell({ id, is: 'local', sdp: await create(id).answerTo(message.sdp) });
  } else if (message.do === 'answer') {
    peers.get(id)?.answer(message.sdp);
  } else {
    peers.get(id)?.close();
    peers.delete(id);
  }
});
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
