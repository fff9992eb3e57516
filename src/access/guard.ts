import type { VirtualHost } from '../core/vhost.ts';
import { kilnError } from '../errors.ts';
import type { WebhookSession, WebhookSessions } from './webhook-session.ts';
import { checkPresent, type AccessRequest, type Target } from './request.ts';

/** The decision of a guard that admits a client. */
export interface Verdict {
  /** Names that replace the requested ones; the last guard that gives one wins. */
  readonly target?: Partial<Target>;
  /** When the session has to end, in milliseconds since the epoch; the earliest of all guards counts. */
  readonly until?: number;
  /** Found by these when an operator revokes it (`markOf`). */
  readonly marks?: readonly string[];
  /** Closed once: when the client's session ends, or when a later check rejects the client. */
  readonly session?: WebhookSession;
}

/** Asks another server, within its own time limit, and answers as a guard does. @param signal aborted when the client leaves */
export type Question = (signal: AbortSignal | undefined) => Promise<Verdict | undefined>;

/** Answer that a guard has at once. */
export type LocalVerdict = Pick<Verdict, 'until' | 'marks'>;

/**
 * Decides about a client, before its stream is looked up. It answers at once where this node can
 * decide, and otherwise with a question that takes time; undefined where it has no say.
 * @throws KilnError when the client is rejected; any other error rejects the client, too
 */
export type Guard = (request: AccessRequest, vhost: VirtualHost) => LocalVerdict | Question | undefined;

/**
 * Lets the guards decide, one after the other.
 * @returns their decisions, in their order
 * @param sessions closes those that earlier guards have opened, when a later one rejects the client
 * @throws what a guard throws, clientGone
 */
export async function askGuards(
  guards: readonly Guard[],
  request: AccessRequest,
  vhost: VirtualHost,
  sessions: WebhookSessions,
): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = [];
  try {
    for (const guard of guards) {
      const answer = guard(request, vhost);
      const verdict = typeof answer === 'function' ? await unlessGone(answer, request.signal, sessions) : answer;
      if (verdict !== undefined) verdicts.push(verdict);
    }
    return verdicts;
  } catch (error) {
    for (const { session } of verdicts) if (session) sessions.close(session, (error as Error).message);
    throw error;
  }
}

/**
 * Lets the guards decide where all of them can answer at once. They are called again when questions can be asked.
 * @returns false where one has a question
 * @throws what a guard throws
 */
export function askGuardsNow(guards: readonly Guard[], request: AccessRequest, vhost: VirtualHost): boolean {
  return guards.every((guard) => typeof guard(request, vhost) !== 'function');
}

/** @throws what the question throws; clientGone as soon as the client leaves: a session that is opened later is closed at once */
function unlessGone(
  question: Question,
  signal: AbortSignal | undefined,
  sessions: WebhookSessions,
): Promise<Verdict | undefined> {
  if (signal === undefined) return question(undefined);
  checkPresent(signal);
  return new Promise((resolve, reject) => {
    const answered = question(signal);
    const onGone = (): void => {
      const gone = kilnError('clientGone');
      answered.then(
        (verdict) => verdict?.session && sessions.close(verdict.session, gone.message),
        () => {},
      );
      reject(gone);
    };
    const settle =
      <T>(pass: (value: T) => void) =>
      (value: T): void => {
        if (signal.aborted) return;
        signal.removeEventListener('abort', onGone);
        pass(value);
      };
    signal.addEventListener('abort', onGone, { once: true });
    answered.then(settle(resolve), settle(reject));
  });
}
