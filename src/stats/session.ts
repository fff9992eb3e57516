import Type, { type Static } from 'typebox';
import type { Session } from '../core/session.ts';
import { alphabetical, SENT, sent } from './fields.ts';
import { localTime } from '../lib/local-time.ts';

export const SessionStatistics = Type.Object(
  alphabetical({ ...SENT, createdTime: Type.String(), lastUpdatedTime: Type.String() }),
);

export function sessionStatistics({ createdTime, out }: Session): Static<typeof SessionStatistics> {
  return { createdTime: localTime(createdTime), lastUpdatedTime: localTime(out.lastTime), ...sent(out) };
}
