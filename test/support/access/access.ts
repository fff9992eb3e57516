import { kilnError, type KilnError } from '../../../src/errors.ts';
import type { Guard, Verdict } from '../../../src/access/guard.ts';
import type { WebhookSession, WebhookSessions } from '../../../src/access/webhook-session.ts';
import type { Client, PlayRequest, PublishRequest } from '../../../src/access/request.ts';

/** Somebody who asks. */
export const CLIENT: Client = { address: '192.0.2.1', port: 40_000, realAddress: '192.0.2.1', localPort: 1935 };

/** A publisher that brings `app/stream`. */
export function publishRequest(more: Partial<PublishRequest> = {}): PublishRequest {
  return {
    direction: 'incoming',
    protocol: 'rtmp',
    hostName: 'live.example',
    app: 'app',
    stream: 'stream',
    query: new URLSearchParams(),
    url: 'rtmp://live.example:1935/app/stream',
    client: CLIENT,
    ...more,
  };
}

/** A viewer of `app/stream`. */
export function playRequest(more: Partial<PlayRequest> = {}): PlayRequest {
  return {
    direction: 'outgoing',
    protocol: 'webrtc',
    hostName: 'live.example',
    app: 'app',
    stream: 'stream',
    query: new URLSearchParams(),
    url: 'ws://live.example:3333/app/stream',
    client: CLIENT,
    ...more,
  };
}

/** What a guard throws that refuses. */
export function denied(): KilnError {
  return kilnError('accessDenied');
}
/** Where no guard opens anything. */
export const NO_WEBHOOK_SESSIONS: WebhookSessions = {
  close: () => {},
  adopt: () => {},
  hold: () => {},
  resume: () => {},
  release: () => {},
};

/** What a guard opens in tests. */
export const WEBHOOK_SESSION: WebhookSession = { id: 'one', vhost: 'default' };

/** Notes why openings were closed. */
export function notedSessions(ends: string[]): WebhookSessions {
  return { ...NO_WEBHOOK_SESSIONS, close: (_, reason) => void ends.push(reason) };
}

/** A question of a guard. */
interface AskedQuestion {
  readonly signal: AbortSignal | undefined;
  /** Admits the client, for a session that is opened. */
  admit(verdict?: Verdict): void;
  refuse(): void;
}

/** A guard whose questions are answered by hand. */
export function askedByHand(): { readonly guard: Guard; readonly questions: AskedQuestion[] } {
  const questions: AskedQuestion[] = [];
  const guard: Guard = () => (signal) =>
    new Promise((resolve, reject) => {
      questions.push({
        signal,
        admit: (verdict) => resolve({ ...verdict, session: WEBHOOK_SESSION }),
        refuse: () => reject(denied()),
      });
    });
  return { guard, questions };
}
