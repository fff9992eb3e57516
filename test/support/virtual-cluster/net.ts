import type { Random } from '../../soak/random.ts';
import type { Process, Scheduler } from './scheduler.ts';

/** What is between two hosts: no way, a firewall that swallows what is sent, or one that refuses connections. */
export type Fault = 'cut' | 'dark' | 'refused';

/** One end of a connection. */
export interface End {
  /** Its process is running, and hears. */
  readonly onOpen?: () => void;
  /** The far end has said something of its own accord. */
  readonly onTold?: (what: readonly string[]) => void;
  /** The connection is over, or could not be made. */
  readonly onClose: (reason: 'refused' | 'unreachable' | 'closed') => void;
}

const MOST_LATENCY_MS = 4;

/** Connections between processes, which are known by the names of their hosts. */
export class Net {
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly #faults = new Map<string, Fault>();
  readonly #sockets = new Set<Socket>();
  /** By address what accepts connections there, if its process lives. */
  readonly #listeners = new Map<string, { readonly process: Process; readonly accept: (socket: Socket) => void }>();
  /** Hosts that say nothing: without power. */
  readonly #silent = new Set<string>();
  readonly #followed = new WeakSet<Process>();

  constructor(scheduler: Scheduler, random: Random) {
    this.scheduler = scheduler;
    this.random = random;
  }

  listen(process: Process, accept: (socket: Socket) => void): void {
    this.#listeners.set(process.name, { process, accept });
    this.#follow(process);
    if (this.#silent.delete(process.name))
      for (const socket of this.#sockets) if (socket.reaches(process.name)) socket.flow();
  }

  /** The host loses its power: nobody hears that its process is gone. */
  silence(process: Process): void {
    this.#silent.add(process.name);
    process.kill();
  }

  fault(a: string, b: string): Fault | undefined {
    if (this.#silent.has(a) || this.#silent.has(b)) return 'dark';
    return this.#faults.get(pair(a, b));
  }

  breaks(a: string, b: string, fault: Fault): void {
    this.#faults.set(pair(a, b), fault);
    if (fault !== 'dark') this.reset(a, b);
  }

  heal(a: string, b: string): void {
    if (!this.#faults.delete(pair(a, b))) return;
    for (const socket of this.#sockets) if (socket.isBetween(a, b)) socket.flow();
  }

  healAll(): void {
    for (const names of [...this.#faults.keys()]) this.heal(...(names.split('|') as [string, string]));
  }

  /** Ends all connections between two hosts: both ends know. */
  reset(a: string, b: string): void {
    for (const socket of this.#sockets) if (socket.isBetween(a, b)) socket.reset();
  }

  connect(from: Process, to: string, end: End): Socket {
    const socket = new Socket(this, from, to, end, () => this.#sockets.delete(socket));
    this.#sockets.add(socket);
    this.#follow(from);
    socket.open();
    return socket;
  }

  /** The kernel closes the connections of a process that is gone. */
  #follow(process: Process): void {
    if (this.#followed.has(process)) return;
    this.#followed.add(process);
    process.onEnd(() => {
      for (const socket of this.#sockets) if (socket.isOf(process)) socket.end(process);
    });
  }

  listener(name: string): { readonly process: Process; readonly accept: (socket: Socket) => void } | undefined {
    const listener = this.#listeners.get(name);
    return listener?.process.isAlive === true ? listener : undefined;
  }

  latency(): number {
    return 1 + this.random.below(MOST_LATENCY_MS);
  }
}

/** One direction of a connection: what is sent arrives in its order. */
interface Way {
  latest: number;
  /** What is under way, and how much of it has been swallowed and is to be sent once more. */
  readonly queue: (() => void)[];
  swallowed: number;
}

/** A connection as TCP has it: what was sent arrives, even late and after its sender has gone, or the connection ends. */
export class Socket {
  readonly from: Process;
  readonly host: string;
  readonly #net: Net;
  readonly #ends: { near: End | undefined; far: End | undefined };
  readonly #ways: { readonly near: Way; readonly far: Way } = {
    near: { latest: 0, queue: [], swallowed: 0 },
    far: { latest: 0, queue: [], swallowed: 0 },
  };
  readonly #onOver: () => void;
  #to: Process | undefined;
  #isOver = false;
  #darkSince: number | undefined;

  constructor(net: Net, from: Process, host: string, near: End, onOver: () => void) {
    this.#net = net;
    this.from = from;
    this.host = host;
    this.#ends = { near, far: undefined };
    this.#onOver = onOver;
  }

  isOf(process: Process): boolean {
    return this.from === process || this.#to === process;
  }

  reaches(host: string): boolean {
    return this.from.name === host || this.host === host;
  }

  isBetween(a: string, b: string): boolean {
    return (this.from.name === a && this.host === b) || (this.from.name === b && this.host === a);
  }

  /** The other end is there as soon as its kernel answers: its process may stand still. */
  open(): void {
    const fault = this.#net.fault(this.from.name, this.host);
    if (fault === 'cut' || fault === 'refused') {
      this.#net.scheduler.after(1, () => this.#over(fault === 'cut' ? 'unreachable' : fault));
      return;
    }
    this.#send('far', () => {
      const listener = this.#net.listener(this.host);
      if (listener === undefined) return this.#send('near', () => this.#over('refused'));
      this.#to = listener.process;
      listener.process.deliver(() => listener.accept(this));
      this.#send('near', () => this.from.deliver(() => this.#ends.near?.onOpen?.()));
    });
  }

  /** The far end hears how the connection ends. */
  accept(end: End): void {
    this.#ends.far = end;
  }

  /** Runs `handle` in the process at the far end. */
  send(handle: () => void): void {
    this.#send('far', () => {
      if (this.#to?.isAlive === true) this.#to.deliver(handle);
      else this.#send('near', () => this.reset());
    });
  }

  /** Runs `handle` in the process that has made the connection, if it listens yet. */
  answer(handle: () => void): void {
    this.#send('near', () => {
      if (this.from.isAlive) this.from.deliver(() => this.#ends.near !== undefined && handle());
      else this.#send('far', () => this.reset());
    });
  }

  /** The far end says something that nobody has asked for. */
  tell(what: readonly string[]): void {
    this.answer(() => this.#ends.near?.onTold?.(what));
  }

  /** A process closes it, or is gone: the other end hears of it after what was sent before. */
  end(process: Process): void {
    const [own, other] = process === this.from ? (['near', 'far'] as const) : (['far', 'near'] as const);
    this.#ends[own] = undefined;
    this.#send(other, () => {
      const receiver = other === 'far' ? this.#to : this.from;
      const end = this.#ends[other];
      this.#ends[other] = undefined;
      this.#leave();
      receiver?.deliver(() => end?.onClose('closed'));
    });
  }

  /** It ends for both at once, and what is under way is lost. */
  reset(): void {
    this.#over('closed');
  }

  /** What was swallowed is sent once more, after a while. */
  flow(): void {
    if (this.#darkSince === undefined) return;
    const { scheduler, random } = this.#net;
    const pause = random.below(scheduler.now - this.#darkSince + 1);
    this.#darkSince = undefined;
    for (const way of Object.values(this.#ways)) {
      way.latest = Math.max(way.latest, scheduler.now + pause);
      for (; way.swallowed > 0; way.swallowed--) this.#carry(way);
    }
  }

  #send(to: 'near' | 'far', arrive: () => void): void {
    if (this.#isOver) return;
    const way = this.#ways[to];
    way.queue.push(arrive);
    this.#carry(way);
  }

  #carry(way: Way): void {
    const { scheduler } = this.#net;
    way.latest = Math.max(scheduler.now + this.#net.latency(), way.latest);
    scheduler.after(way.latest - scheduler.now, () => {
      if (this.#isOver) return;
      if (this.#net.fault(this.from.name, this.host) === 'dark') {
        this.#darkSince ??= scheduler.now;
        way.swallowed += 1;
      } else way.queue.shift()?.();
    });
  }

  #over(reason: 'refused' | 'unreachable' | 'closed'): void {
    if (this.#isOver) return;
    this.#leave();
    const { near, far } = this.#ends;
    this.#ends.near = this.#ends.far = undefined;
    if (near !== undefined) this.from.deliver(() => near.onClose(reason));
    if (far !== undefined) this.#to?.deliver(() => far.onClose(reason));
  }

  #leave(): void {
    this.#isOver = true;
    this.#onOver();
  }
}

function pair(a: string, b: string): string {
  return a < b ? `${a}|${b}` : `${b}|${a}`;
}
