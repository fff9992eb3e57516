import { fork, type ChildProcess } from 'node:child_process';
import type { PeerNews, ToPeer } from './serve-peers.ts';
import { PATIENCE_MS } from '../time/until.ts';

/** A child process (`serve-peers.ts`) that has all peers of one kind of a test file; started with the first. */
export class PeerProcess<Options, News = never> {
  readonly #file: URL;
  readonly #peers = new Map<number, (news: PeerNews | News) => void>();
  #child: ChildProcess | undefined;
  #ended: string | undefined;
  #count = 0;

  constructor(file: URL) {
    this.#file = file;
  }

  /** The exit code or the signal with which the child ended, as it never should; undefined while it runs. */
  get ended(): string | undefined {
    return this.#ended;
  }

  /** @param hear takes what is told of the peer @returns its id */
  add(hear: (news: PeerNews | News) => void): number {
    this.#peers.set(this.#count, hear);
    return this.#count++;
  }

  tell(message: ToPeer<Options>): void {
    this.#child ??= this.#fork();
    // of one that has ended hears who waits for a peer
    this.#child.send(message, () => {});
  }

  delete(id: number): void {
    this.#peers.delete(id);
  }

  #fork(): ChildProcess {
    const child = fork(this.#file, { serialization: 'advanced' });
    child.on('exit', (code, signal) => (this.#ended = signal ?? `code ${code}`));
    child.on('message', (news: (PeerNews | News) & { readonly id: number }) => this.#peers.get(news.id)?.(news));
    // it ends with the test file, and holds nothing up until then
    child.unref();
    child.channel?.unref();
    return child;
  }
}

/** What a peer is to believe that it was answered, or the other end that it was offered. */
export type Change = (sdp: string) => string | Promise<string>;

/** A WebRTC peer in a process of its own. */
export class RemotePeer<Options, News = never> {
  state = 'new';
  readonly #process: PeerProcess<Options, News>;
  readonly #options: Options;
  readonly #id: number;
  readonly #waiters = new Set<() => void>();
  #local = '';

  /** @param onNews takes what is told beside descriptions and states */
  constructor(process: PeerProcess<Options, News>, options: Options, onNews: (news: News) => void = () => {}) {
    this.#process = process;
    this.#options = options;
    this.#id = process.add((news) => {
      if (isOfEvery(news)) this.#take(news);
      else onNews(news);
      this.#wake();
    });
  }

  /** The offer with all candidates. */
  async offer(): Promise<string> {
    this.#process.tell({ id: this.#id, do: 'offer', options: this.#options });
    await this.until(() => this.#local !== '');
    return this.#local;
  }

  /** Takes an offer; the answer with all candidates. */
  async answerTo(sdp: string): Promise<string> {
    this.#process.tell({ id: this.#id, do: 'answerTo', sdp, options: this.#options });
    await this.until(() => this.#local !== '');
    return this.#local;
  }

  /**
   * Offers to an endpoint of WHIP or WHEP what `changeOffer` makes of its offer, and takes its answer, as `change` makes it.
   * @throws Error for any status but 201
   */
  protected async post(url: string, change: Change = same, changeOffer: Change = same): Promise<Response> {
    const body = await changeOffer(await this.offer());
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/sdp' }, body });
    const answer = await response.text();
    if (response.status !== 201) throw new Error(`${response.status}: ${answer}`);
    this.answer(await change(answer));
    return response;
  }

  /** Takes the answer to its offer. */
  answer(sdp: string): void {
    this.#process.tell({ id: this.#id, do: 'answer', sdp });
  }

  /**
   * Resolves when `condition` holds, which is looked at with everything that is told of the peer.
   * @throws Error with it when that takes too long, or when the child is gone
   */
  async until(condition: () => boolean): Promise<void> {
    const end = performance.now() + PATIENCE_MS;
    // the child holds nothing up, so that somebody must who waits for it
    const alive = setInterval(() => this.#wake(), 1000);
    try {
      while (!condition()) {
        const { ended } = this.#process;
        if (ended !== undefined) throw new Error(`the process of the peer has ended with ${ended}`);
        if (performance.now() > end) throw new Error(`not in time: ${condition}`);
        await new Promise<void>((done) => this.#waiters.add(done));
      }
    } finally {
      clearInterval(alive);
    }
  }

  close(): void {
    this.#process.delete(this.#id);
    this.#process.tell({ id: this.#id, do: 'close' });
  }

  #wake(): void {
    for (const waiter of this.#waiters) waiter();
    this.#waiters.clear();
  }

  #take(news: PeerNews): void {
    if (news.is === 'local') this.#local = news.sdp;
    else this.state = news.state;
  }
}

function same(sdp: string): string {
  return sdp;
}

function isOfEvery<News>(news: PeerNews | News): news is PeerNews {
  const { is } = news as PeerNews;
  return is === 'local' || is === 'state';
}
