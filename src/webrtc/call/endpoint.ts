import { mediaType } from '../../lib/media-type.ts';
import type { OutboundGuard } from '../../protocols/outbound/guard.ts';
import { wholeBody } from '../../protocols/outbound/http-body.ts';
import { httpRequest, parseLinkedUrl, type HttpAnswer } from '../../protocols/outbound/http-request.ts';
import type { EndpointUrl } from './url.ts';

const SDP = 'application/sdp';
const MAX_BYTES = 128 * 1024;
const ACCEPTED = new Set([200, 201]);
/** Types of answers whose text is a reason for an operator. */
const REASONS = /^(?:text\/plain|application\/(?:problem\+)?json)$/;
const MAX_REASON = 300;

/**
 * Client of one session of WHIP (RFC 9725) or WHEP (draft-ietf-wish-whep): posts the offer, and deletes the session. Nothing is
 * trickled, since the offer has all candidates.
 */
export class Endpoint {
  readonly #guard: OutboundGuard;
  readonly #url: URL;
  readonly #token: string | undefined;
  #session: URL | undefined;

  /** @param guard checks every server that is asked */
  constructor(guard: OutboundGuard, { url, token }: EndpointUrl) {
    this.#guard = guard;
    this.#url = url;
    this.#token = token;
  }

  /** Posts an offer. @returns the answer @throws the guard's error when there is none */
  async offer(sdp: string, signal: AbortSignal): Promise<string> {
    const answer = await httpRequest(this.#guard, this.#url, {
      method: 'POST',
      accept: SDP,
      body: sdp,
      signal,
      headersFor: (url) => ({ 'Content-Type': SDP, ...this.#authorization(url) }),
    });
    const { statusCode = 0, headers } = answer.response;
    const type = mediaType(headers['content-type'] ?? '');
    const isAnswer = ACCEPTED.has(statusCode) && type === SDP;
    const { location } = headers;
    if (isAnswer && location !== undefined) this.#session = parseLinkedUrl(location, answer.url);
    const body = await this.#body(answer, isAnswer);
    if (isAnswer) return body;
    if (ACCEPTED.has(statusCode))
      throw this.#guard.error(`the server answered with ${type || 'nothing'} instead of SDP`);
    const reason = REASONS.test(type) ? this.#masked(body.trim().slice(0, MAX_REASON)) : '';
    throw this.#guard.error(`the server refused the offer (${statusCode})${reason === '' ? '' : `: ${reason}`}`);
  }

  /** Ends the session, where the server has named it. Never rejects: servers notice it without that, only later. */
  async leave(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    if (session === undefined) return;
    try {
      const { socket } = await httpRequest(this.#guard, session, {
        method: 'DELETE',
        accept: '*/*',
        headersFor: (url) => this.#authorization(url),
      });
      socket.destroy();
    } catch {
      // the server may be what has failed
    }
  }

  async #body(answer: HttpAnswer, isAnswer: boolean): Promise<string> {
    try {
      return (await wholeBody(answer, MAX_BYTES, this.#guard)).toString();
    } catch (error) {
      if (isAnswer) throw error;
      return '';
    }
  }

  /** The token goes to no other origin (RFC 9110 section 15.4), where a server might lead with it. */
  #authorization({ origin }: URL): { readonly Authorization?: string } {
    return this.#token === undefined || origin !== this.#url.origin ? {} : { Authorization: `Bearer ${this.#token}` };
  }

  #masked(text: string): string {
    return this.#token === undefined ? text : text.replaceAll(this.#token, '...');
  }
}
