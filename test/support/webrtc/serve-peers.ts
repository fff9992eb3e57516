/** What the parent of a process that has peers asks of one. */
export type ToPeer<Options> = { readonly id: number } & (
  | { readonly do: 'offer'; readonly options: Options }
  | { readonly do: 'answerTo'; readonly sdp: string; readonly options: Options }
  | { readonly do: 'answer'; readonly sdp: string }
  | { readonly do: 'close' }
);

/** What it is told of every peer. */
export type PeerNews =
  | { readonly is: 'local'; readonly sdp: string }
  | { readonly is: 'state'; readonly state: string };

interface Peer {
  /** An offer, or an answer, with all candidates. */
  offer(): Promise<string>;
  answerTo(sdp: string): Promise<string>;
  answer(sdp: string): void;
  close(): void;
}

/**
 * Makes this child process hold any number of peers for `remote-peer.ts`. libdatachannel's threads neither let a process exit nor
 * bear its exit: it ends when its parent does.
 * @param make a peer that tells its news
 */
export function servePeers<Options, News = never>(
  make: (options: Options, tell: (news: PeerNews | News) => void) => Peer,
): void {
  const peers = new Map<number, Peer>();
  // the parent may go at any time
  const tell = (id: number, news: PeerNews | News): void =>
    void process.send?.({ id, ...news }, undefined, undefined, () => {});
  const create = (id: number, options: Options): Peer => {
    const peer = make(options, (news) => tell(id, news));
    peers.set(id, peer);
    return peer;
  };
  process.on('message', async (message: ToPeer<Options>) => {
    const { id } = message;
    if (message.do === 'offer') tell(id, { is: 'local', sdp: await create(id, message.options).offer() });
    else if (message.do === 'answerTo')
      tell(id, { is: 'local', sdp: await create(id, message.options).answerTo(message.sdp) });
    else if (message.do === 'answer') peers.get(id)?.answer(message.sdp);
    else {
      peers.get(id)?.close();
      peers.delete(id);
    }
  });
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
}
