import Type from 'typebox';
import type { NodeIdentity } from '#cluster';
import { kilnError } from '../errors.ts';
import type { OtherNodes } from '../peers/other-nodes.ts';
import { definePeerCall } from '../peers/peer-call.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import type { SharedStatistics } from '../stats/shared-statistics.ts';

/** Asks a node to report its present counts of a stream. */
const REPORT = definePeerCall('statistics/report', Type.Object({ key: Type.String() }), Type.Null());

/** Asks another node to report its counts of a stream. Resolves to whether it has. */
export function askForReport(others: OtherNodes): (node: NodeIdentity, key: string) => Promise<boolean> {
  return async (node, key) => {
    const { error } = await others.askOne(node, REPORT, { key });
    // a node of another version reports all of its streams once a second
    return error === undefined || error.code === 'callUnknown';
  };
}

export function answerReports(calls: PeerCalls, statistics: SharedStatistics): void {
  calls.answer(REPORT, async ({ key }) => {
    if (!(await statistics.reportSoon(key))) throw kilnError('statisticsUnavailable');
    return null;
  });
}
