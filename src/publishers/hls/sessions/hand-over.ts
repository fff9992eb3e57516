import type { NodeIdentity } from '#cluster';
import type { Application } from '../../../core/application.ts';
import { KilnError } from '../../../errors.ts';
import type { Logger } from '../../../log/log.ts';
import type { PeerCalls } from '../../../peers/peer-calls.ts';
import type { HlsForm } from '../package/hls-form.ts';
import type { HandedSession } from './session-grants.ts';
import { callsOf, MAX_REPORTED } from './wire.ts';

const TIMEOUT_MS = 5000;

/** Hands sessions over to the node that goes on with a stream. @returns those that it did not take */
export type HandOver = (
  application: Application,
  stream: string,
  owner: NodeIdentity,
  sessions: readonly HandedSession[],
) => Promise<readonly HandedSession[]>;

export function handOverBy(form: HlsForm, calls: PeerCalls, log: Logger): HandOver {
  const { sessions: call } = callsOf(form);
  return async (application, stream, owner, sessions) => {
    const names = { vhost: application.vhost.name, app: application.name, stream };
    for (let at = 0; at < sessions.length; at += MAX_REPORTED) {
      const handed = sessions.slice(at, at + MAX_REPORTED);
      try {
        await calls.call(owner, call, { ...names, sessions: handed }, TIMEOUT_MS);
      } catch (error) {
        const reason = error instanceof KilnError ? error.message : (error as Error);
        log.error(
          { err: reason },
          `node ${owner.id} did not take over sessions of ${application.internalName}/${stream}`,
        );
        return sessions.slice(at);
      }
    }
    return [];
  };
}
