import type { Connection } from '../../core/source.ts';
import { FaultLog } from '../../log/log.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import { parseSrtCallUrl, type SrtCallUrl } from '../../protocols/srt/call-url.ts';
import type { SrtCalls } from '../../protocols/srt/calls.ts';
import type { SrtConnection } from '../../protocols/srt/connection.ts';
import { SrtError } from '../../protocols/srt/error.ts';
import { LossLog } from '../../protocols/srt/loss-log.ts';
import { TsSource } from '../mpegts-intake/source.ts';
import { PullError } from '../pull/error.ts';
import type { OpenSource, PullSource, SourceOptions, SourceSink } from '../pull/source.ts';
import { trackSink } from '../pull/track-sink.ts';
import { tsConfig } from '../pull/ts-config.ts';

/** Most missing messages that continuity counters reveal: two have at most 14 packets, and the counters 16 values. */
const COUNTED_MESSAGES = 2;
/** Wait of a call for a listener that does not answer. */
const CALL_MS = 10_000;

/** Receives MPEG-TS from SRT listeners. */
export function srtSource(calls: SrtCalls): OpenSource {
  return async (target, options) => {
    const url = parsed(target);
    try {
      const connection = await calls.call({ ...url, signal: AbortSignal.timeout(CALL_MS) });
      return new SrtSource(connection, options);
    } catch (error) {
      throw error instanceof SrtError ? new PullError(error.message) : error;
    }
  };
}

function parsed(target: string): SrtCallUrl {
  try {
    return parseSrtCallUrl(target);
  } catch (error) {
    if (!(error instanceof SrtError)) throw error;
    throw new PullError(`not the URL of an SRT listener: ${shownUrl(target)} (${error.message})`);
  }
}

/** The stream of one connection. Until it plays, libsrt holds what the listener sends. */
class SrtSource implements PullSource {
  readonly connection: Connection;
  readonly #connection: SrtConnection;
  readonly #options: SourceOptions;
  readonly #faults: FaultLog;
  #sink: SourceSink | undefined;
  #source: TsSource | undefined;
  /** Why it ended before it played. */
  #over: string | undefined;
  #closed = false;

  constructor(connection: SrtConnection, options: SourceOptions) {
    const { address: remoteAddress, port: remotePort } = connection.peer;
    this.connection = { transport: 'SRT', protocol: 'SRT', remoteAddress, remotePort };
    this.#connection = connection;
    this.#options = options;
    this.#faults = new FaultLog(options.log);
    const losses = new LossLog(options.log, 'received');
    connection.handlers = {
      counted: (statistics) => losses.add(statistics),
      data: (bytes) => {
        this.#sink?.received(bytes.length);
        this.#source?.push(bytes);
      },
      lost: (messages) => this.#lose(messages),
      close: () => {
        this.#source?.flush();
        this.#end('the listener closed the connection');
      },
    };
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
      onFailure: (reason) => this.#end(reason),
    });
    this.#connection.read();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#connection.close((srt) => this.#options.log.debug({ srt }, 'SRT connection closed'));
    this.#source?.close();
    this.#faults.close();
  }

  /** Counts messages that were not received in time, in spite of retransmission. */
  #lose(messages: number): void {
    this.#sink?.lost(messages);
    this.#faults.count('SRT messages were lost in the network');
    if (messages > COUNTED_MESSAGES) this.#source?.lost();
  }

  #end(reason: string): void {
    if (this.#closed) return;
    this.close();
    this.#over = reason;
    this.#sink?.end(reason);
  }
}
