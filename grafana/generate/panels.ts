import type { DashboardSpec, PanelSpec, Query, Unit } from './dashboard.ts';

const NODE = 'instance=~"$instance"';
const APP = `${NODE}, vhost=~"$vhost", application=~"$application"`;
const STREAM = `${APP}, stream=~"$stream"`;
/** What tells a stream from others, whichever nodes have or play it. */
const ONE_STREAM = 'vhost, application, stream';
const STREAM_NAME = '{{vhost}}/{{application}}/{{stream}}';
const RATE = '[$__rate_interval]';

const rate = (metric: string, labels: string): string => `rate(${metric}{${labels}}${RATE})`;
const sum = (by: string, expr: string): string => (by === '' ? `sum(${expr})` : `sum by (${by}) (${expr})`);
/** Of a histogram. */
const quantile = (share: number, by: string, metric: string, labels: string): string =>
  `histogram_quantile(${share}, ${sum(by === '' ? 'le' : `le, ${by}`, rate(`${metric}_bucket`, labels))})`;
/** Median and 95th percentile. */
const quantiles = (by: string, legend: string, metric: string, labels: string): Query[] =>
  [0.5, 0.95].map((share) => ({
    expr: quantile(share, by, metric, labels),
    legend: `p${share * 100} ${legend}`.trim(),
  }));

function graph(title: string, unit: Unit, queries: readonly Query[], more: Partial<PanelSpec> = {}): PanelSpec {
  return { title, unit, queries, ...more };
}

function stat(title: string, unit: Unit, expr: string, more: Partial<PanelSpec> = {}): PanelSpec {
  return { title, unit, kind: 'stat', queries: [{ expr }], ...more };
}

const CPU = sum('instance', rate('kiln_process_cpu_seconds_total', NODE));

const OVERVIEW: DashboardSpec = {
  uid: 'kiln-overview',
  title: 'Kiln: overview',
  about: 'All nodes at a glance: streams, viewers, bit rates, and what is wrong.',
  variables: ['instance', 'vhost', 'application'],
  rows: [
    {
      title: 'Now',
      panels: [
        stat('Nodes', 'none', `count(kiln_node_info{${NODE}})`),
        stat('Streams', 'none', `sum(kiln_sources{${APP}})`),
        stat('Viewers', 'none', `sum(kiln_viewers{${APP}})`),
        stat('In', 'bps', `8 * ${sum('', rate('kiln_application_received_bytes_total', APP))}`),
        stat('Out', 'bps', `8 * ${sum('', rate('kiln_application_sent_bytes_total', APP))}`),
        stat('Busiest node', 'percentunit', `max(${CPU})`, {
          about: 'CPU of the server process: one core is the most that its event loop can use.',
          limits: [0.7, 0.9],
        }),
      ],
    },
    {
      title: 'Streams and viewers',
      panels: [
        graph(
          'Streams by source',
          'none',
          [{ expr: sum('provider', `kiln_sources{${APP}}`), legend: '{{provider}}' }],
          {
            stacked: true,
          },
        ),
        graph(
          'Viewers by protocol',
          'none',
          [{ expr: sum('protocol', `kiln_viewers{${APP}}`), legend: '{{protocol}}' }],
          {
            stacked: true,
          },
        ),
        graph('Received, by application', 'bps', [
          {
            expr: `8 * ${sum('vhost, application', rate('kiln_application_received_bytes_total', APP))}`,
            legend: '{{vhost}}/{{application}}',
          },
        ]),
        graph('Sent, by application', 'bps', [
          {
            expr: `8 * ${sum('vhost, application', rate('kiln_application_sent_bytes_total', APP))}`,
            legend: '{{vhost}}/{{application}}',
          },
        ]),
      ],
    },
    {
      title: 'What is wrong',
      panels: [
        graph('Refused publishers and viewers', 'cps', [
          {
            expr: sum('direction, protocol, reason', rate('kiln_refusals_total', NODE)),
            legend: '{{direction}} {{protocol}}: {{reason}}',
          },
        ]),
        graph('Warnings and errors of the log', 'cps', [
          {
            expr: sum('level', rate('kiln_log_lines_total', `${NODE}, level=~"warn|error|fatal"`)),
            legend: '{{level}}',
          },
        ]),
        graph('Packets dropped for slow readers', 'cps', [
          { expr: `topk(10, ${sum('stream', rate('kiln_stream_dropped_packets_total', APP))})`, legend: '{{stream}}' },
        ]),
        graph('Alarming events', 'none', [
          {
            expr: `${sum('event', `increase(kiln_events_total{${NODE}, event=~".*(failed|died|lost|given-up|unreachable|buried)"}${RATE})`)} > 0`,
            legend: '{{event}}',
          },
        ]),
        graph('Alerts', 'none', [
          { expr: sum('code', `increase(kiln_alerts_total{${NODE}}${RATE})`), legend: '{{code}}' },
        ]),
      ],
    },
  ],
};

const STREAMS: DashboardSpec = {
  uid: 'kiln-stream',
  title: 'Kiln: stream',
  about: 'The health of what publishers send, and who watches it.',
  variables: ['instance', 'vhost', 'application', 'stream'],
  rows: [
    {
      title: 'Input',
      panels: [
        graph('Bit rate of tracks', 'bps', [
          {
            expr: `8 * kiln_stream_track_bytes_per_second{${STREAM}}`,
            legend: `${STREAM_NAME} {{kind}} {{track}}`,
          },
        ]),
        graph('Frame rate', 'rotfps', [
          {
            expr: `kiln_stream_track_frames_per_second{${STREAM}}`,
            legend: `${STREAM_NAME} {{track}}`,
          },
        ]),
        graph(
          'Key-frame interval',
          's',
          [
            {
              expr: `kiln_stream_track_key_frame_interval_seconds{${STREAM}}`,
              legend: `${STREAM_NAME} {{track}}`,
            },
          ],
          { about: 'Players start at key frames, and segments end there: 1 to 2 s is right.', limits: [2.5, 5] },
        ),
        graph('Lag', 's', [{ expr: `kiln_stream_lag_seconds{${STREAM}}`, legend: STREAM_NAME }], {
          about: 'How long the newest media is ago: it grows while nothing comes of the publisher.',
          limits: [1, 5],
        }),
        graph(
          'Jitter',
          's',
          [
            {
              expr: `kiln_stream_track_arrival_jitter_seconds{${STREAM}}`,
              legend: `${STREAM_NAME} {{track}}`,
            },
          ],
          {
            about: 'How unevenly packets arrive. The network, or an encoder that sends in bursts.',
            limits: [0.05, 0.2],
          },
        ),
        graph('Audio against video', 's', [{ expr: `kiln_stream_av_offset_seconds{${STREAM}}`, legend: STREAM_NAME }], {
          about:
            'By timestamps and arrival at the input: above 0 audio is late. Viewers notice 125 ms of it, or 45 ms where it is early (ITU-R BT.1359).',
        }),
        graph(
          'Packets lost on the way in',
          'cps',
          [
            {
              expr: sum(ONE_STREAM, rate('kiln_stream_lost_packets_total', STREAM)),
              legend: STREAM_NAME,
            },
          ],
          { about: 'RTP packets, SRT messages and gaps in MPEG-TS: RTMP loses nothing, but falls behind.' },
        ),
        graph(
          'SRT: round-trip time and buffer',
          's',
          [
            {
              expr: `kiln_stream_srt_rtt_seconds{${STREAM}}`,
              legend: `round trip ${STREAM_NAME} {{direction}}`,
            },
            {
              expr: `kiln_stream_srt_buffer_seconds{${STREAM}}`,
              legend: `buffer ${STREAM_NAME} {{direction}}`,
            },
          ],
          { about: 'A latency of less than three to four round trips leaves no time to send lost packets again.' },
        ),
        graph(
          'SRT: packets lost, sent again and dropped',
          'cps',
          (['lost', 'retransmitted', 'dropped', 'belated', 'undecryptable'] as const).map((what) => ({
            expr: sum(`${ONE_STREAM}, direction`, rate(`kiln_stream_srt_${what}_packets_total`, STREAM)),
            legend: `${what} ${STREAM_NAME} {{direction}}`,
          })),
          { about: 'Lost ones are sent again; what is dropped was too late in spite of that.' },
        ),
        graph('Reconnects', 'none', [
          {
            expr: `increase(kiln_stream_reconnects_total{${STREAM}}${RATE})`,
            legend: STREAM_NAME,
          },
        ]),
        graph('Changes of format, and B-frames', 'none', [
          {
            expr: `increase(kiln_stream_track_config_changes_total{${STREAM}}${RATE})`,
            legend: `changes ${STREAM_NAME} {{track}}`,
          },
          {
            expr: `kiln_stream_track_bidirectional_frames{${STREAM}}`,
            legend: `B-frames ${STREAM_NAME} {{track}}`,
          },
          {
            expr: `kiln_stream_track_open_gops{${STREAM}}`,
            legend: `open GOPs ${STREAM_NAME} {{track}}`,
          },
        ]),
      ],
    },
    {
      title: 'Viewers',
      panels: [
        graph(
          'Viewers by protocol',
          'none',
          [
            {
              expr: sum(`${ONE_STREAM}, protocol`, `kiln_stream_viewers{${STREAM}}`),
              legend: `${STREAM_NAME} {{protocol}}`,
            },
          ],
          { stacked: true },
        ),
        graph('Received and sent', 'bps', [
          {
            expr: `8 * ${sum(ONE_STREAM, rate('kiln_stream_received_bytes_total', STREAM))}`,
            legend: `in ${STREAM_NAME}`,
          },
          {
            expr: `8 * ${sum(ONE_STREAM, rate('kiln_stream_sent_bytes_total', STREAM))}`,
            legend: `out ${STREAM_NAME}`,
          },
        ]),
        graph('Packets dropped for slow readers', 'cps', [
          {
            expr: sum(ONE_STREAM, rate('kiln_stream_dropped_packets_total', STREAM)),
            legend: STREAM_NAME,
          },
        ]),
        graph('Readers that fell behind', 'none', [
          {
            expr: sum(ONE_STREAM, `increase(kiln_stream_slow_readers_total{${STREAM}}${RATE})`),
            legend: STREAM_NAME,
          },
        ]),
      ],
    },
    {
      title: 'Encoding',
      panels: [
        graph(
          'Speed of encoders',
          'none',
          [{ expr: rate('kiln_encoder_media_seconds_total', STREAM), legend: STREAM_NAME }],
          { about: 'Seconds of media a second: 1 keeps up.' },
        ),
        graph('Media that waits for encoders', 's', [
          { expr: `kiln_encoder_queue_seconds{${STREAM}}`, legend: STREAM_NAME },
        ]),
        graph('CPU of encoders, in cores', 'none', [
          { expr: rate('kiln_encoder_cpu_seconds_total', STREAM), legend: STREAM_NAME },
        ]),
        graph('Memory of encoders', 'bytes', [
          { expr: `kiln_encoder_resident_memory_bytes{${STREAM}}`, legend: STREAM_NAME },
        ]),
      ],
    },
    {
      title: 'All streams',
      panels: [
        {
          title: 'Streams',
          kind: 'table',
          unit: 'dateTimeFromNow',
          queries: [
            {
              expr: `1000 * kiln_stream_start_time_seconds{${STREAM}} * on (instance, vhost, application, stream) group_left (source) kiln_stream_info{${STREAM}}`,
            },
          ],
        },
        {
          title: 'Tracks',
          about: 'Height of the picture, with codec.',
          kind: 'table',
          unit: 'pixel',
          queries: [
            {
              expr: `kiln_stream_track_height_pixels{${STREAM}} * on (instance, vhost, application, stream, track) group_left (codec) kiln_stream_track_info{${STREAM}}`,
            },
          ],
        },
      ],
    },
  ],
};

const VIEWERS: DashboardSpec = {
  uid: 'kiln-viewers',
  title: "Kiln: viewers' experience",
  about: 'How long viewers wait for their first media, whether it stops, and what players are answered.',
  variables: ['instance', 'vhost', 'application'],
  rows: [
    {
      title: 'Joining',
      panels: [
        graph('Time to the first media', 's', quantiles('protocol', '{{protocol}}', 'kiln_viewer_join_seconds', NODE), {
          about: 'From the request to the first segment or part; of WebRTC until the connection is up.',
          limits: [2, 4],
        }),
        graph('Sessions that begin', 'cps', [
          { expr: sum('protocol', rate('kiln_viewer_sessions_total', APP)), legend: '{{protocol}}' },
        ]),
        graph('Refused viewers', 'cps', [
          {
            expr: sum('protocol, reason', rate('kiln_refusals_total', `${NODE}, direction!="incoming"`)),
            legend: '{{protocol}}: {{reason}}',
          },
        ]),
        graph('Viewers', 'none', [{ expr: sum('protocol', `kiln_viewers{${APP}}`), legend: '{{protocol}}' }], {
          stacked: true,
        }),
      ],
    },
    {
      title: 'Watching',
      panels: [
        graph(
          'Stalls',
          'cps',
          [{ expr: sum('protocol', rate('kiln_viewer_stalls_total', NODE)), legend: '{{protocol}}' }],
          {
            about:
              'How often a viewer got nothing for a second or more, or a player waited for a part that did not come.',
          },
        ),
        graph('Bit rate for each viewer', 'bps', [
          {
            expr: `8 * ${sum('protocol', rate('kiln_viewer_sent_bytes_total', NODE))} / (${sum('protocol', `kiln_viewers{${NODE}}`)} > 0)`,
            legend: '{{protocol}}',
          },
        ]),
        graph('Delay of parts', 's', quantiles('protocol', '{{protocol}}', 'kiln_playlist_part_delay_seconds', NODE), {
          about: 'From when the media at the end of a part had arrived until players could have it, encoding included.',
        }),
        graph('Requests that wait', 'none', [
          {
            expr: sum('instance, protocol', `kiln_playlist_waiting_requests{${NODE}}`),
            legend: '{{instance}} {{protocol}}',
          },
        ]),
      ],
    },
    {
      title: 'HLS and LL-HLS',
      panels: [
        graph('Requests by kind', 'reqps', [
          { expr: sum('protocol, kind', rate('kiln_playlist_requests_total', NODE)), legend: '{{protocol}} {{kind}}' },
        ]),
        graph('Requests by status', 'reqps', [
          {
            expr: sum('protocol, status', rate('kiln_playlist_requests_total', NODE)),
            legend: '{{protocol}} {{status}}',
          },
        ]),
      ],
    },
  ],
};

const QUALITY: DashboardSpec = {
  uid: 'kiln-quality',
  title: 'Kiln: quality as players report it',
  about: 'What players report of their playback by CMCD, where the page turns that on: docs/quality.md.',
  variables: ['instance', 'vhost', 'application', 'stream'],
  rows: [
    {
      title: 'Playback',
      panels: [
        graph(
          'Starvations, as a share of reports',
          'percentunit',
          [
            {
              expr: `${sum(ONE_STREAM, rate('kiln_player_starvations_total', STREAM))} / (${sum(ONE_STREAM, rate('kiln_player_reports_total', STREAM))} > 0)`,
              legend: STREAM_NAME,
            },
          ],
          { about: 'Requests before which the buffer of the player had run empty.', limits: [0.01, 0.05] },
        ),
        graph('Time without media', 's', quantiles(ONE_STREAM, STREAM_NAME, 'kiln_player_starvation_seconds', STREAM)),
        graph('Startup', 's', quantiles(ONE_STREAM, STREAM_NAME, 'kiln_player_startup_seconds', STREAM), {
          about: 'From the start of playback until it was seen.',
          limits: [2, 5],
        }),
        graph('Dropped frames', 'cps', [
          { expr: sum(ONE_STREAM, rate('kiln_player_dropped_frames_total', STREAM)), legend: STREAM_NAME },
        ]),
      ],
    },
    {
      title: 'Live edge and buffer',
      panels: [
        graph('Latency', 's', quantiles(ONE_STREAM, STREAM_NAME, 'kiln_player_latency_seconds', STREAM)),
        graph('Buffer', 's', quantiles(ONE_STREAM, STREAM_NAME, 'kiln_player_buffer_seconds', STREAM), {
          about: 'Media in the buffers of players when they ask for more.',
        }),
        graph('Playback rate', 'none', quantiles(ONE_STREAM, STREAM_NAME, 'kiln_player_playback_rate', STREAM), {
          about: 'Players that catch up with the live edge play a little faster than 1.',
        }),
      ],
    },
    {
      title: 'WebRTC',
      panels: [
        graph(
          'Packet loss',
          'percentunit',
          quantiles(ONE_STREAM, STREAM_NAME, 'kiln_player_packet_loss_ratio', STREAM),
          { about: 'Packets that were lost on the way to viewers, before retransmissions.', limits: [0.02, 0.1] },
        ),
        graph('Round trip', 's', quantiles(ONE_STREAM, STREAM_NAME, 'kiln_player_round_trip_seconds', STREAM), {
          about: 'Time to viewers and back.',
          limits: [0.3, 1],
        }),
      ],
    },
    {
      title: 'Renditions',
      panels: [
        graph(
          'Bit rate, as a share of the highest',
          'percentunit',
          quantiles(ONE_STREAM, STREAM_NAME, 'kiln_player_bitrate_ratio', STREAM),
        ),
        graph('Reports by rendition', 'cps', [
          {
            expr: sum(`${ONE_STREAM}, rendition`, rate('kiln_player_rendition_reports_total', STREAM)),
            legend: `${STREAM_NAME} {{rendition}}`,
          },
        ]),
        graph('Starvations by rendition', 'cps', [
          {
            expr: sum(`${ONE_STREAM}, rendition`, rate('kiln_player_rendition_starvations_total', STREAM)),
            legend: `${STREAM_NAME} {{rendition}}`,
          },
        ]),
        graph('Reports by result', 'cps', [
          { expr: sum('result', rate('kiln_player_reports_received_total', NODE)), legend: '{{result}}' },
        ]),
      ],
    },
  ],
};

const NODES: DashboardSpec = {
  uid: 'kiln-node',
  title: 'Kiln: node',
  about: 'What the processes of a node use, and whether its event loop keeps up.',
  variables: ['instance'],
  rows: [
    {
      title: 'Server process',
      panels: [
        graph('CPU, in cores', 'none', [{ expr: CPU, legend: '{{instance}}' }], {
          about: 'Its event loop can use one.',
          limits: [0.7, 0.9],
        }),
        graph('Event loop busy', 'percentunit', [
          { expr: rate('kiln_event_loop_active_seconds_total', NODE), legend: '{{instance}}' },
        ]),
        graph(
          'Delay of the event loop',
          's',
          [0.5, 0.95, 0.99].map((share) => ({
            expr: quantile(share, 'instance', 'kiln_event_loop_delay_seconds', NODE),
            legend: `p${share * 100} {{instance}}`,
          })),
          { about: 'Media waits as long.', limits: [0.05, 0.2] },
        ),
        graph('Pauses for garbage collection', 'percentunit', [
          { expr: sum('instance, kind', rate('kiln_gc_pause_seconds_sum', NODE)), legend: '{{instance}} {{kind}}' },
        ]),
        graph('Memory', 'bytes', [
          { expr: `kiln_process_resident_memory_bytes{${NODE}}`, legend: 'resident {{instance}}' },
          { expr: `kiln_process_heap_bytes{${NODE}, state="used"}`, legend: 'heap {{instance}}' },
          { expr: `kiln_process_buffers_bytes{${NODE}}`, legend: 'buffers {{instance}}' },
        ]),
        graph(
          'File descriptors',
          'percentunit',
          [{ expr: `kiln_process_open_fds{${NODE}} / kiln_process_max_fds{${NODE}}`, legend: '{{instance}}' }],
          { limits: [0.6, 0.8] },
        ),
      ],
    },
    {
      title: 'Media workers (WebRTC)',
      panels: [
        graph(
          'CPU of workers, in cores',
          'none',
          [{ expr: rate('kiln_media_worker_cpu_seconds_total', NODE), legend: '{{instance}} {{worker}}' }],
          { limits: [0.7, 0.9] },
        ),
        graph('Sessions of media workers', 'none', [
          { expr: `kiln_media_worker_sessions{${NODE}}`, legend: '{{instance}} {{worker}}' },
        ]),
        graph('Memory of workers', 'bytes', [
          { expr: `kiln_media_worker_resident_memory_bytes{${NODE}}`, legend: '{{instance}} {{worker}}' },
        ]),
        graph('Workers that died', 'none', [
          { expr: `increase(kiln_media_worker_deaths_total{${NODE}}${RATE})`, legend: '{{instance}}' },
        ]),
      ],
    },
    {
      title: 'Encoders',
      panels: [
        graph('Encoder processes', 'none', [
          { expr: sum('instance', `kiln_encoder_processes{${NODE}}`), legend: '{{instance}}' },
        ]),
        graph('CPU of encoders, in cores', 'none', [
          { expr: sum('instance', rate('kiln_encoder_cpu_seconds_total', NODE)), legend: '{{instance}}' },
        ]),
        graph('Encoders started and died', 'none', [
          { expr: `increase(kiln_encoder_starts_total{${NODE}}${RATE})`, legend: 'started {{instance}}' },
          { expr: `increase(kiln_encoder_deaths_total{${NODE}}${RATE})`, legend: 'died {{instance}}' },
        ]),
        graph('Faults that come with packets', 'cps', [
          { expr: sum('instance, module', rate('kiln_faults_total', NODE)), legend: '{{instance}} {{module}}' },
        ]),
      ],
    },
    {
      title: 'What runs',
      panels: [
        {
          title: 'Nodes',
          about: 'When the process was started.',
          kind: 'table',
          unit: 'dateTimeFromNow',
          queries: [
            {
              expr: `1000 * kiln_process_start_time_seconds{${NODE}} * on (instance) group_left (node, version, runtime) kiln_node_info{${NODE}}`,
            },
          ],
        },
      ],
    },
  ],
};

const CLUSTER: DashboardSpec = {
  uid: 'kiln-cluster',
  title: 'Kiln: cluster',
  about: 'Nodes, their store, and what they have to do with each other. Each node tells of its own.',
  variables: ['instance'],
  rows: [
    {
      title: 'Nodes',
      panels: [
        graph(
          'Nodes by state',
          'none',
          [{ expr: `max by (state) (kiln_cluster_nodes{${NODE}})`, legend: '{{state}}' }],
          { about: 'As the node sees it that sees most of them.' },
        ),
        graph(
          'Connected to the store',
          'bool_yes_no',
          [{ expr: `kiln_cluster_connected{${NODE}}`, legend: '{{instance}}' }],
          { kind: 'state-timeline' },
        ),
        graph('Draining', 'bool_yes_no', [{ expr: `kiln_node_draining{${NODE}}`, legend: '{{instance}}' }], {
          kind: 'state-timeline',
        }),
        graph('Held claims', 'none', [{ expr: `kiln_cluster_claims{${NODE}}`, legend: '{{instance}}' }], {
          about: 'Names of streams, and tasks.',
        }),
        graph('Not authenticated', 'none', [
          { expr: `kiln_cluster_distrusted{${NODE}}`, legend: '{{instance}} {{kind}}' },
        ]),
        graph('Viewers of each node', 'none', [
          { expr: sum('instance', `kiln_viewers{${NODE}}`), legend: '{{instance}}' },
        ]),
      ],
    },
    {
      title: 'Redis',
      panels: [
        graph('Time of commands', 's', quantiles('instance', '{{instance}}', 'kiln_redis_command_seconds', NODE), {
          limits: [0.05, 0.2],
        }),
        graph('Commands', 'cps', [
          { expr: rate('kiln_redis_command_seconds_count', NODE), legend: '{{instance}}' },
          { expr: rate('kiln_redis_command_failures_total', NODE), legend: 'failed {{instance}}' },
        ]),
        graph('Beats', 'cps', [{ expr: rate('kiln_cluster_beats_total', NODE), legend: '{{instance}} {{result}}' }]),
      ],
    },
    {
      title: 'Between nodes',
      panels: [
        graph('Time of calls', 's', quantiles('call', '{{call}}', 'kiln_peer_call_seconds', NODE)),
        graph('Calls', 'cps', [
          { expr: sum('call', rate('kiln_peer_call_seconds_count', NODE)), legend: '{{call}}' },
          { expr: sum('call', rate('kiln_peer_call_failures_total', NODE)), legend: 'failed {{call}}' },
        ]),
        graph('Relays', 'none', [{ expr: sum('instance', `kiln_relays{${NODE}}`), legend: '{{instance}}' }], {
          about: 'Output streams of other nodes that a node relays, or whose HLS or LL-HLS players it counts.',
        }),
        graph('Streams taken over, publishers held', 'none', [
          { expr: `increase(kiln_stream_takeovers_total{${NODE}}${RATE})`, legend: 'taken over {{instance}}' },
          { expr: `kiln_held_publishers{${NODE}}`, legend: 'held {{instance}}' },
        ]),
      ],
    },
  ],
};

const WORK: DashboardSpec = {
  uid: 'kiln-work',
  title: 'Kiln: tasks and channels',
  about: 'Recordings, pushes, pulled streams, channels.',
  variables: ['instance', 'vhost', 'application'],
  rows: [
    {
      title: 'Tasks',
      panels: [
        graph('Running tasks', 'none', [{ expr: sum('kind', `kiln_tasks_running{${NODE}}`), legend: '{{kind}}' }], {
          stacked: true,
        }),
        graph('Runs that begin', 'none', [
          { expr: sum('kind', `increase(kiln_task_runs_total{${NODE}}${RATE})`), legend: '{{kind}}' },
        ]),
        graph('Runs that fail', 'none', [
          { expr: sum('kind', `increase(kiln_task_failures_total{${NODE}}${RATE})`), legend: '{{kind}}' },
        ]),
        graph('Taken over from other nodes', 'none', [
          { expr: sum('kind', `increase(kiln_task_takeovers_total{${NODE}}${RATE})`), legend: '{{kind}}' },
        ]),
        graph('Recordings, pushes and dumps', 'none', [
          {
            expr: sum(
              'event',
              `increase(kiln_events_total{${NODE}, event=~"(record|push|dump|delivery)[.].*"}${RATE})`,
            ),
            legend: '{{event}}',
          },
        ]),
        graph('Sent to pushes', 'bps', [
          {
            expr: `8 * ${sum('instance', rate('kiln_viewer_sent_bytes_total', `${NODE}, protocol="push"`))}`,
            legend: '{{instance}}',
          },
        ]),
      ],
    },
    {
      title: 'Channels',
      panels: [
        graph(
          'Channels by state',
          'none',
          [{ expr: sum('state', `kiln_channel_state{${APP}}`), legend: '{{state}}' }],
          { stacked: true },
        ),
        {
          title: 'Channels',
          about: 'What each of them does now.',
          kind: 'table',
          unit: 'none',
          width: 12,
          queries: [{ expr: `kiln_channel_state{${APP}} == 1` }],
        },
      ],
    },
  ],
};

const API: DashboardSpec = {
  uid: 'kiln-api',
  title: 'Kiln: API and access',
  about: 'Calls of the management API, and of the control servers that are asked about clients.',
  variables: ['instance'],
  rows: [
    {
      title: 'Management API',
      panels: [
        graph('Calls by status', 'reqps', [
          { expr: sum('status', rate('kiln_api_requests_total', NODE)), legend: '{{status}}' },
        ]),
        graph('Calls by route', 'reqps', [
          {
            expr: `topk(10, ${sum('method, route', rate('kiln_api_requests_total', NODE))})`,
            legend: '{{method}} {{route}}',
          },
        ]),
        graph('Time of calls', 's', quantiles('', '', 'kiln_api_request_seconds', NODE)),
        graph('Time of the slowest routes', 's', [
          { expr: `topk(10, ${quantile(0.95, 'route', 'kiln_api_request_seconds', NODE)})`, legend: '{{route}}' },
        ]),
      ],
    },
    {
      title: 'Admission webhooks',
      panels: [
        graph('Time of calls', 's', quantiles('kind', '{{kind}}', 'kiln_webhook_call_seconds', NODE)),
        graph('Calls', 'cps', [
          { expr: sum('kind', rate('kiln_webhook_call_seconds_count', NODE)), legend: '{{kind}}' },
          { expr: sum('kind', rate('kiln_webhook_failures_total', NODE)), legend: 'failed {{kind}}' },
        ]),
      ],
    },
    {
      title: 'Refusals',
      panels: [
        graph('Refused publishers', 'cps', [
          {
            expr: sum('protocol, reason', rate('kiln_refusals_total', `${NODE}, direction="incoming"`)),
            legend: '{{protocol}}: {{reason}}',
          },
        ]),
        graph('Sources that have come', 'none', [
          { expr: sum('provider', `increase(kiln_sources_started_total{${NODE}}${RATE})`), legend: '{{provider}}' },
        ]),
      ],
    },
  ],
};

/** By the name of their file. */
export const DASHBOARDS: Readonly<Record<string, DashboardSpec>> = {
  overview: OVERVIEW,
  stream: STREAMS,
  viewers: VIEWERS,
  quality: QUALITY,
  node: NODES,
  cluster: CLUSTER,
  work: WORK,
  api: API,
};
