import type { Socket } from 'node:net';
import type { Connection } from '../../core/source.ts';
import { FaultLog } from '../../log/log.ts';
import { RtspClient } from '../../protocols/rtsp/client.ts';
import { parseRtspUrl } from '../../protocols/rtsp/url.ts';
import { connectionOf, dial } from '../../protocols/outbound/dial.ts';
import { cutsCredentials, FRAGMENT_FAULT } from '../../protocols/outbound/fragment.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import { PullError } from '../pull/error.ts';
import type { OutboundGuard } from '../../protocols/outbound/guard.ts';
import type { OpenSource, PullSource, SourceOptions, SourceSink } from '../pull/source.ts';
import { isTakenMedia, openRtspIngest } from '../rtsp-intake/open.ts';

/** Connects to RTSP servers that the guard allows. */
export function rtspSource(guard: OutboundGuard): OpenSource {
  return async (target, options) => {
    if (parseRtspUrl(target) === undefined) {
      const why = cutsCredentials(target) ? ` (${FRAGMENT_FAULT})` : '';
      throw new PullError(`not an RTSP URL: ${shownUrl(target)}${why}`);
    }
    const client = await RtspClient.connect(target, {
      wants: isTakenMedia,
      dial: (host, port, signal) => dial(guard, host, port, { signal }),
      checkUdp: (address, port, signal) => guard.addresses(address, port, 'udp', signal),
      signal: options.signal,
    });
    return new RtspSource(client, options);
  };
}

class RtspSource implements PullSource {
  readonly #client: RtspClient;
  readonly #options: SourceOptions;
  readonly #faults: FaultLog;
  #ingest: ReturnType<typeof openRtspIngest> | undefined;
  #closed = false;

  constructor(client: RtspClient, options: SourceOptions) {
    this.#client = client;
    this.#options = options;
    this.#faults = new FaultLog(options.log);
  }

  get connection(): Connection {
    return connectionBy(this.#client.socket, this.#client.transport === 'udp' ? 'UDP' : 'TCP');
  }

  get trouble(): string | undefined {
    return this.#faults.latest;
  }

  async play(sink: SourceSink): Promise<void> {
    const { clock, ignoresReports, silenceMs = 0, log } = this.#options;
    const end = (reason: string): void => {
      if (this.#closed) return;
      this.close();
      sink.end(reason);
    };
    await this.#client.play({
      begin: (media, transport) => {
        this.#ingest?.close();
        this.#ingest = openRtspIngest({
          media,
          transport,
          clock,
          ignoresReports,
          silenceMs,
          log,
          faults: this.#faults,
          onEnd: end,
          sink: {
            setTracks: (tracks) => sink.tracks(tracks, []),
            write: (packet) => sink.packet(packet),
            lost: (packets) => sink.lost(packets),
            trouble: (code, description) => sink.trouble(code, description),
          },
          report: (track, data) => this.#client.report(track, data),
        });
      },
      ignored: (encoding, reason) => {
        if (reason === undefined) log.warn({ encoding }, 'a track over RTSP is not supported and is ignored');
        else log.warn({ encoding, reason }, 'the server refused a track of the pulled stream, which is ignored');
      },
      start: (track, rtpTime) => this.#ingest?.start(track, rtpTime),
      rtp: (track, data) => this.#ingest?.rtp(track, data),
      rtcp: (track, data) => this.#ingest?.rtcp(track, data),
      received: (bytes) => sink.received(bytes),
      unexpectedSource: () => this.#faults.count('ignored datagrams that do not come from the RTSP server'),
      garbage: () => this.#faults.count('skipped bytes between RTSP packets'),
      fault: (error) => log.error({ err: error }, 'receiving a stream over RTSP failed'),
      end,
    });
  }

  close(): void {
    this.#closed = true;
    this.#ingest?.close();
    this.#client.close();
    this.#faults.close();
  }
}

function connectionBy(socket: Socket, transport: 'TCP' | 'UDP'): Connection {
  return { ...connectionOf(socket), transport, protocol: transport };
}
