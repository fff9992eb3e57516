import type { Link } from '../../core/links.ts';
import type { Connection } from '../../core/source.ts';
import { FaultLog } from '../../log/log.ts';
import { TsSource } from '../mpegts-intake/source.ts';
import { tsConfig } from '../mpegts-intake/ts-config.ts';
import { PullError } from './error.ts';
import type { PullSource, SourceOptions, SourceSink } from './source.ts';
import { trackSink } from './track-sink.ts';

/** Connection by which a transport stream arrives. */
export interface TsLine {
  readonly connection: Connection;
  readonly link?: Link;
  /** Starts to read: until then, what arrives waits where the protocol keeps it. */
  read(): void;
  /** Called once. */
  close(): void;
}

/** A pulled stream that arrives as MPEG-TS. Its protocol passes on what it receives, and the end. */
export class PulledTs implements PullSource {
  readonly connection: Connection;
  readonly link: Link | undefined;
  readonly #line: TsLine;
  readonly #options: SourceOptions;
  readonly #faults: FaultLog;
  #sink: SourceSink | undefined;
  #source: TsSource | undefined;
  /** Why it ended before it played. */
  #over: string | undefined;
  #closed = false;

  constructor(line: TsLine, options: SourceOptions) {
    this.connection = line.connection;
    this.link = line.link;
    this.#line = line;
    this.#options = options;
    this.#faults = new FaultLog(options.log);
  }

  get trouble(): string | undefined {
    return this.#faults.latest;
  }

  async play(sink: SourceSink): Promise<void> {
    if (this.#over !== undefined) throw new PullError(this.#over);
    const { clock, silenceMs, log } = this.#options;
    this.#sink = sink;
    this.#source = new TsSource({
      sink: trackSink(sink, clock),
      config: tsConfig(clock, silenceMs ?? 0),
      log,
      faults: this.#faults,
      onFailure: (reason) => this.end(reason),
    });
    this.#line.read();
  }

  /** @param bytes any portion of the transport stream; not kept */
  push(bytes: Buffer): void {
    this.#sink?.received(bytes.length);
    this.#source?.push(bytes);
  }

  /** Counts SRT messages that were not received in time, in spite of retransmission. */
  lost(messages: number): void {
    this.#sink?.lost(messages);
    this.#faults.count('SRT messages were lost in the network');
    this.#source?.lostMessages(messages);
  }

  /** Goes on after a loss of unknown size, for which the log has a reason. */
  gap(reason: string): void {
    this.#sink?.lost(1);
    this.#faults.count(reason);
    this.#source?.lost();
  }

  /** Counts a fault of what arrives, for the log. */
  fault(reason: string): void {
    this.#faults.count(reason);
  }

  /** Nothing follows. Idempotent. */
  end(reason: string): void {
    if (this.#closed) return;
    this.#source?.flush();
    this.close();
    this.#over = reason;
    this.#sink?.end(reason);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#line.close();
    this.#source?.close();
    this.#faults.close();
  }
}
