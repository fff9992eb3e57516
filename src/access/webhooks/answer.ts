import Type from 'typebox';
import Value from 'typebox/value';
import { ControlServerError, type ControlAnswer } from '../../control-server/post.ts';

/** Longest lifetime in milliseconds: with it the end of a session is still a date. */
const MAX_LIFETIME = 1e15;
const MAX_REASON = 200;

const ANSWER = Type.Object({
  allowed: Type.Boolean(),
  new_url: Type.Optional(Type.String({ maxLength: 8192 })),
  lifetime: Type.Optional(Type.Number({ minimum: 0, maximum: MAX_LIFETIME })),
  reason: Type.Optional(Type.String()),
});

/** Decision of a control server. */
export interface Answer {
  readonly allowed: boolean;
  readonly newUrl: string | undefined;
  /** Milliseconds; undefined: as long as the client wants. */
  readonly lifetime: number | undefined;
  readonly reason: string;
}

/** @throws ControlServerError where it is none (docs/compatibility.md#control-servers) */
export function readAnswer({ status, body }: ControlAnswer): Answer {
  if (status !== 200) throw new ControlServerError(`it answered with status ${status}`, true);
  const answer = parse(body);
  if (!Value.Check(ANSWER, answer)) {
    const at = Value.Errors(ANSWER, answer)[0]?.instancePath.slice(1);
    throw new ControlServerError(`it answered wrongly${at ? `: ${at}` : ''}`, true);
  }
  const { allowed, new_url: newUrl, lifetime, reason = '' } = answer;
  return { allowed, newUrl: newUrl || undefined, lifetime: lifetime || undefined, reason: reason.slice(0, MAX_REASON) };
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    throw new ControlServerError('it answered with something that is not JSON', true);
  }
}
