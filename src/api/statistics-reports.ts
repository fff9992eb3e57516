import Type from 'typebox';
import type { NodeIdentity } from '#cluster';
import { kilnError } from '../errors.ts';
import type { OtherNodes } from '../peers/other-nodes.ts';
import { definePeerCall } from '../peers/peer-call.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import type { SharedStatistics } from '../stats/shared-statistics.ts';

/** Reports what a node counts of a stream now. */
const REPORT = definePeerCall('statistics/report', Type.Object({ key: Type.String() }), Type.Null());

/** Has another node report what it counts of a stream, and tells whether it has. */
export function askForReport(others: OtherNodes): (node: NodeIdentity, key: string) => Promise<boolean> {
  return async (node, key) => {
    const { error } = await others.askOne(node, REPORT, { key });
    // a node of another version reports all of its streams once a second
    return error === undefined || error.code === 'callUnknown';
  };
}

/** Reports when another node asks for it. */
export function answerReports(calls: PeerCalls, statistics: SharedStatistics): void {
  calls.answer(REPORT, async ({ key }) => {
    if (!(await statistics.reportSoon(key))) throw kilnError('statisticsUnavailable');
    return null;
  });
}
