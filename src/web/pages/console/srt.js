import { bits } from '../common.js';

/** @import { SrtConnections, SrtFigures } from '../answers.ts' */

/**
 * "2 connections, 12.3 ms round trip, 120 ms in the buffer, 8.1 Mbit/s possible, 3 of 1000 packets lost, 3 sent again".
 * @param {SrtFigures & Partial<Pick<SrtConnections, 'connections'>>} figures
 */
export function srtText({ connections = 1, rtt, capacity, buffer, packets, ...counts }) {
  const { lost, retransmitted, dropped, belated, undecryptable } = counts;
  return [
    connections === 1 ? '' : `${connections} connections`,
    `${rtt.toFixed(1)} ms round trip`,
    `${buffer} ms in the buffer`,
    capacity > 0 ? `${bits(capacity)} possible` : '',
    `${lost} of ${packets} packets lost`,
    retransmitted > 0 ? `${retransmitted} sent again` : '',
    dropped > 0 ? `${dropped} dropped` : '',
    belated > 0 ? `${belated} belated` : '',
    undecryptable > 0 ? `${undecryptable} not decrypted` : '',
  ]
    .filter((part) => part !== '')
    .join(', ');
}
