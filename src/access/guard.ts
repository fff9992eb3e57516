import type { VirtualHost } from '../core/vhost.ts';
import { kilnError } from '../errors.ts';
import type { AccessRequest, Target } from './request.ts';

/** What a guard says of a client that it lets in. */
export interface Verdict {
  /** Names to go on with in place of those that were asked for; the last guard that gives one is followed. */
  readonly target?: Partial<Target>;
  /** When the session ends, in milliseconds since the epoch; the earliest of all guards counts. */
  readonly until?: number;
  /** Called exactly once: when the session ends, or when the client is refused after all. It throws nothing. */
  readonly end?: (reason: string) => void;
}

/** Asks somebody else, and answers as a guard does. It has a time limit of its own. @param signal the client goes away */
export type Question = (signal: AbortSignal | undefined) => Promise<Verdict | undefined>;

/** What a guard says without asking anybody. */
export type LocalVerdict = Pick<Verdict, 'until'>;

/**
 * Decides about a client, before it is known whether there is what it asks for. It answers at once where this node can
 * tell, and else with a question, which is put when there is time for it: undefined where it has nothing to say.
 * @throws KilnError when the client is refused; whatever else it throws refuses the client, too
 */
export type Guard = (request: AccessRequest, vhost: VirtualHost) => LocalVerdict | Question | undefined;

/**
 * Lets the guards decide, one after the other.
 * @returns what they say, in their order
 * @throws what a guard throws, clientGone; those before it are told by their `end`
 */
export async function askGuards(
  guards: readonly Guard[],
  request: AccessRequest,
  vhost: VirtualHost,
): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = [];
  try {
    for (const guard of guards) {
      const answer = guard(request, vhost);
      const verdict = typeof answer === 'function' ? await unlessGone(answer, request.signal) : answer;
      if (verdict !== undefined) verdicts.push(verdict);
    }
    return verdicts;
  } catch (error) {
    for (const { end } of verdicts) end?.((error as Error).message);
    throw error;
  }
}

/**
 * Lets the guards decide as far as none has to ask anybody. They are asked again when there is time for questions.
 * @returns false where one has to ask
 * @throws what a guard throws
 */
export function askGuardsNow(guards: readonly Guard[], request: AccessRequest, vhost: VirtualHost): boolean {
  return guards.every((guard) => typeof guard(request, vhost) !== 'function');
}

/** @throws what the question does; clientGone as soon as the client goes, and a verdict that comes later ends at once */
function unlessGone(question: Question, signal: AbortSignal | undefined): Promise<Verdict | undefined> {
  if (signal === undefined) return question(undefined);
  if (signal.aborted) throw kilnError('clientGone');
  return new Promise((resolve, reject) => {
    const answered = question(signal);
    const onGone = (): void => {
      const gone = kilnError('clientGone');
      answered.then(
        (verdict) => verdict?.end?.(gone.message),
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
