import { hedged } from './hedged.js';
import { useIceServers } from './ice-servers.js';

/** A server that has not said by then that it still has a session is gone. */
const CONFIRM_TIMEOUT_MS = 1000;
const END_TIMEOUT_MS = 2500;
const FRAGMENT_TYPE = 'application/trickle-ice-sdpfrag';
/**
 * The identifiers under which the server writes header extensions. It answers those that are offered so, and only with
 * them can it tell what the network carries and choose the rendition by it.
 */
const IDENTIFIERS = new Map([
  ['urn:ietf:params:rtp-hdrext:sdes:mid', 1],
  ['http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time', 4],
  ['http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01', 5],
]);

/** Whether this browser sets an offer with other identifiers than its own; one that does not is sent the first rendition. */
let takesIdentifiers = true;

/** One session of a viewer (draft-ietf-wish-whep). It is asked for with `offer`, and plays from `begin` on. */
export class WhepSession {
  #peer = new RTCPeerConnection();
  #stream = new MediaStream();
  #closed = false;
  #closing = new AbortController();
  #url;
  #offer;
  #answer;
  #answerHeaders;

  /**
   * Asks for the session; where no node answers at first, others as well. What they grant besides is ended at once.
   * @param pauses as those of `hedged`
   * @throws Refusal, TypeError and TimeoutError where no node answers
   */
  async offer(url, { timeoutMs, pauses }) {
    this.#offer = await this.#describe();
    if (this.#closed) return;
    const ask = () =>
      fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/sdp' },
        body: this.#offer.sdp,
        signal: AbortSignal.timeout(timeoutMs),
      });
    const response = await hedged(ask, pauses, (late) => endSession(locationOf(late)));
    if (response.status !== 201) throw new Refusal(response.status);
    this.#url = locationOf(response);
    // it was not known before that there is something to end
    if (this.#closed) endSession(this.#url);
    this.#answerHeaders = response.headers;
    this.#answer = await response.text();
  }

  /**
   * Receives what was granted.
   * @param receives called with the stream as soon as it has a track
   * @param ended called when nothing can come any more: `{ reason, final }`
   */
  async begin(receives, ended) {
    if (this.#closed) return;
    const peer = this.#peer;
    // a browser may tell of the end that it is told to make
    const end = (failure) => this.#closed || ended(failure);
    peer.ontrack = ({ track }) => {
      this.#stream.addTrack(track);
      receives(this.#stream);
    };
    peer.onconnectionstatechange = () => {
      if (peer.connectionState === 'failed') {
        end({ reason: 'No WebRTC connection could be made: a firewall may block UDP and TCP', final: false });
      }
    };
    useIceServers(peer, this.#answerHeaders);
    await this.#setOffer();
    await peer.setRemoteDescription({ type: 'answer', sdp: this.#answer });
    const dtls = peer.getReceivers()[0]?.transport;
    dtls?.addEventListener('statechange', () => dtls.state === 'closed' && end(LOST));
  }

  /** Statistics of the browser. */
  report() {
    return this.#peer.getStats();
  }

  /** Packets of media so far. RTCP and checks of the way (ICE) count for nothing: they go on while a server stands still. */
  async received() {
    let received = 0;
    for (const entry of (await this.report()).values())
      if (entry.type === 'inbound-rtp') received += entry.packetsReceived;
    return received;
  }

  /** Whether a node says that it has the session: it is sent a candidate exchange that changes nothing (RFC 9725, 4.3.1). */
  async isKnown() {
    if (this.#url === undefined) return true;
    const body = this.#offer.sdp
      .match(/^a=ice-(?:ufrag|pwd):.*\r\n/gm)
      .slice(0, 2)
      .join('');
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(CONFIRM_TIMEOUT_MS)]);
    const headers = { 'content-type': FRAGMENT_TYPE, 'if-match': '*' };
    try {
      return (await fetch(this.#url, { method: 'PATCH', headers, body, signal })).ok;
    } catch {
      return false;
    }
  }

  /** Also what is granted later. Idempotent. */
  close() {
    if (this.#closed) return;
    this.#closed = true;
    this.#closing.abort();
    this.#peer.close();
    endSession(this.#url);
  }

  async #describe() {
    const peer = this.#peer;
    peer.addTransceiver('video', { direction: 'recvonly' });
    peer.addTransceiver('audio', { direction: 'recvonly' });
    const offer = await peer.createOffer();
    // Without it browsers decode Opus to one channel.
    const sdp = offer.sdp.replaceAll('useinbandfec=1', 'useinbandfec=1;stereo=1');
    return { type: 'offer', sdp: takesIdentifiers ? identified(sdp) : sdp };
  }

  /** Only now that the answer has told of ICE servers: browsers gather candidates from here on. */
  async #setOffer() {
    try {
      await this.#peer.setLocalDescription(this.#offer);
    } catch (error) {
      if (!takesIdentifiers) throw error;
      // the answer is to the changed offer, and the next session makes another one
      takesIdentifiers = false;
      throw LOST;
    }
  }
}

/** What ends a player whose server has gone. */
export const LOST = { reason: 'The connection to the server was lost', final: false };

/** Of the session that an answer grants. */
function locationOf(response) {
  const location = response.status === 201 ? response.headers.get('location') : null;
  return location === null ? undefined : new URL(location, response.url);
}

/** Says that nobody plays a session. Its node may be the one that has gone: then it finds that out by itself. */
function endSession(url) {
  if (url === undefined) return;
  fetch(url, { method: 'DELETE', keepalive: true, signal: AbortSignal.timeout(END_TIMEOUT_MS) }).catch(() => undefined);
}

/** An offer with the server's identifiers for its extensions, and others for the rest. */
function identified(sdp) {
  const given = new Map(IDENTIFIERS);
  const free = [2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14];
  return sdp.replace(/^a=extmap:\d+(\S*) (\S+).*\r\n/gm, (_, direction, uri) => {
    if (!given.has(uri)) given.set(uri, free.shift());
    const id = given.get(uri);
    return id === undefined ? '' : `a=extmap:${id}${direction} ${uri}\r\n`;
  });
}

const REFUSALS = {
  401: { reason: 'You are not allowed to watch this stream', final: true },
  403: { reason: 'You are not allowed to watch this stream', final: true },
  404: { reason: undefined, final: false },
  406: { reason: 'This browser and this stream have no codec in common for WebRTC', final: true },
  409: { reason: undefined, final: false },
  503: { reason: 'The server cannot play this stream now', final: false },
};

/** No session, and what a viewer reads of it: `{ reason, final }`. */
export class Refusal extends Error {
  constructor(status) {
    super(`status ${status}`);
    const { reason, final } = REFUSALS[status] ?? { reason: `The server refused WebRTC (${status})`, final: false };
    this.reason = reason;
    this.final = final;
  }
}
