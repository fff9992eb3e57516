/** What is worth waking somebody for. */
export interface Rule {
  /** Without `Kiln`; docs/troubleshoot.md has a heading of the same words. */
  readonly name: string;
  readonly expr: string;
  /** How long the expression has to hold. */
  readonly lasts?: string;
  readonly severity: 'warning' | 'critical';
  readonly summary: string;
  readonly description: string;
}

/** Alerts for Prometheus, by group. */
export const RULES: Readonly<Record<string, readonly Rule[]>> = {
  'kiln-nodes': [
    {
      name: 'NodeDown',
      expr: 'up{job="kiln"} == 0',
      lasts: '1m',
      severity: 'critical',
      summary: '{{ $labels.instance }} does not answer',
      description: 'Prometheus cannot scrape the node: its process has ended, or it cannot be reached.',
    },
    {
      name: 'EventLoopLate',
      expr: 'histogram_quantile(0.99, sum by (instance, le) (rate(kiln_event_loop_delay_seconds_bucket[5m]))) > 0.2',
      lasts: '5m',
      severity: 'warning',
      summary: 'The event loop of {{ $labels.instance }} is late',
      description: 'One in a hundred looks at the event loop comes more than 0.2 s too late, and media waits as long.',
    },
    {
      name: 'ProcessBusy',
      expr: 'sum by (instance) (rate(kiln_process_cpu_seconds_total[5m])) > 0.9',
      lasts: '10m',
      severity: 'warning',
      summary: '{{ $labels.instance }} uses a whole core',
      description: 'The server process cannot use more than one core: run more nodes on the machine, or move streams.',
    },
    {
      name: 'MediaWorkerBusy',
      expr: 'rate(kiln_media_worker_cpu_seconds_total[5m]) > 0.9',
      lasts: '5m',
      severity: 'warning',
      summary: 'A media worker of {{ $labels.instance }} uses a whole core',
      description: 'Its WebRTC viewers lose packets: configure more workers (ICE ports), or more nodes.',
    },
    {
      name: 'MediaWorkerDied',
      expr: 'increase(kiln_media_worker_deaths_total[10m]) > 0',
      severity: 'critical',
      summary: 'A media worker of {{ $labels.instance }} has died',
      description: 'Its WebRTC viewers were disconnected, and another worker was started.',
    },
    {
      name: 'DescriptorsRunOut',
      expr: 'kiln_process_open_fds / kiln_process_max_fds > 0.8',
      lasts: '5m',
      severity: 'warning',
      summary: '{{ $labels.instance }} runs out of file descriptors',
      description: 'Without descriptors new connections are refused: raise LimitNOFILE.',
    },
    {
      name: 'ErrorsLogged',
      expr: 'sum by (instance) (increase(kiln_log_lines_total{level=~"error|fatal"}[10m])) > 10',
      severity: 'warning',
      summary: '{{ $labels.instance }} logs many errors',
      description: 'More than ten lines of level error in ten minutes.',
    },
    {
      name: 'AlertsUndelivered',
      expr: 'increase(kiln_alerts_undelivered_total[10m]) > 0',
      severity: 'warning',
      summary: 'Alerts of {{ $labels.instance }} do not arrive',
      description: 'The server of Alert/Url refuses them, or has been away for so long that too many wait.',
    },
    {
      name: 'ManyFaults',
      expr: 'sum by (instance, module) (rate(kiln_faults_total[5m])) > 10',
      lasts: '5m',
      severity: 'warning',
      summary: '{{ $labels.module }} of {{ $labels.instance }} counts many faults',
      description: 'Malformed or lost packets come at a high rate; the log names them once a second.',
    },
  ],
  'kiln-streams': [
    {
      name: 'StreamStalled',
      expr: 'kiln_stream_lag_seconds > 5',
      lasts: '30s',
      severity: 'warning',
      summary: 'Nothing comes of {{ $labels.application }}/{{ $labels.stream }}',
      description: 'The publisher is connected, and its newest media is more than 5 s old.',
    },
    {
      name: 'StreamReconnects',
      expr: 'increase(kiln_stream_reconnects_total[15m]) > 3',
      severity: 'warning',
      summary: '{{ $labels.application }}/{{ $labels.stream }} reconnects again and again',
      description: 'Its publisher loses the connection more often than every five minutes.',
    },
    {
      name: 'LongKeyFrameInterval',
      expr: 'kiln_stream_track_key_frame_interval_seconds > 5',
      lasts: '2m',
      severity: 'warning',
      summary: '{{ $labels.application }}/{{ $labels.stream }} has few key frames',
      description: 'Players start at key frames, and segments end there: set the encoder to one every 1 or 2 s.',
    },
    {
      name: 'ReadersTooSlow',
      expr: 'sum by (instance, vhost, application, stream) (increase(kiln_stream_slow_readers_total[5m])) > 10',
      lasts: '5m',
      severity: 'warning',
      summary: 'Readers of {{ $labels.application }}/{{ $labels.stream }} lose packets',
      description: 'Viewers, encoders or recordings of the stream are too slow: packets are dropped for them.',
    },
    {
      name: 'EncoderDied',
      expr: 'increase(kiln_encoder_deaths_total[10m]) > 2',
      severity: 'warning',
      summary: 'Encoders of {{ $labels.instance }} die again and again',
      description: 'An ffmpeg ended though it was not to, and was started again; the log has its reason.',
    },
    {
      name: 'EncoderTooSlow',
      expr: '(rate(kiln_encoder_media_seconds_total[2m]) < 0.9) and on (instance, vhost, application, stream) kiln_encoder_queue_seconds > 1',
      lasts: '2m',
      severity: 'warning',
      summary: 'The encoders of {{ $labels.application }}/{{ $labels.stream }} are too slow',
      description:
        'They put out less than they are given: frames are dropped. Choose a faster preset, or fewer renditions.',
    },
    {
      name: 'PartsLate',
      expr: 'histogram_quantile(0.95, sum by (instance, protocol, le) (rate(kiln_playlist_part_delay_seconds_bucket[5m]))) > 2',
      lasts: '5m',
      severity: 'warning',
      summary: 'Parts of LL-HLS at {{ $labels.instance }} are late',
      description:
        'One part in twenty is there more than 2 s after its media has arrived: encoders or the event loop are too slow.',
    },
  ],
  'kiln-viewers': [
    {
      name: 'ViewersStall',
      expr: 'sum by (instance, protocol) (rate(kiln_viewer_stalls_total[5m])) > 0.02 * sum by (instance, protocol) (kiln_viewers > 0)',
      lasts: '5m',
      severity: 'warning',
      summary: 'Viewers of {{ $labels.instance }} by {{ $labels.protocol }} see stalls',
      description: 'More than one viewer in fifty gets no media for a second, each second.',
    },
    {
      name: 'SlowJoin',
      expr: 'histogram_quantile(0.95, sum by (instance, protocol, le) (rate(kiln_viewer_join_seconds_bucket[10m]))) > 4',
      lasts: '10m',
      severity: 'warning',
      summary: 'Viewers by {{ $labels.protocol }} wait long for their first media',
      description: 'One viewer in twenty waits more than 4 s at {{ $labels.instance }}.',
    },
    {
      name: 'PlayersStarve',
      expr: 'sum by (vhost, application, stream) (rate(kiln_player_starvations_total[5m])) > 0.02 * (sum by (vhost, application, stream) (rate(kiln_player_reports_total[5m])) > 0.1)',
      lasts: '5m',
      severity: 'warning',
      summary: 'Players of {{ $labels.application }}/{{ $labels.stream }} run out of media',
      description:
        'Before more than one request in fifty the buffer of the player had run empty, as players report by CMCD.',
    },
    {
      name: 'PlayersStartSlowly',
      expr: 'histogram_quantile(0.95, sum by (vhost, application, stream, le) (rate(kiln_player_startup_seconds_bucket[10m]))) > 5',
      lasts: '10m',
      severity: 'warning',
      summary: 'Players of {{ $labels.application }}/{{ $labels.stream }} start slowly',
      description: 'One player in twenty reports that more than 5 s went by until playback was seen.',
    },
    {
      name: 'ManyRefusals',
      expr: 'sum by (instance, protocol, reason) (rate(kiln_refusals_total[5m])) > 1',
      lasts: '5m',
      severity: 'warning',
      summary: '{{ $labels.instance }} refuses many clients: {{ $labels.reason }}',
      description: 'More than one {{ $labels.protocol }} client a second is refused.',
    },
    {
      name: 'WebhooksFail',
      expr: 'sum by (instance, kind) (rate(kiln_webhook_failures_total[5m])) > 0',
      lasts: '5m',
      severity: 'critical',
      summary: 'The control server does not answer {{ $labels.instance }}',
      description: 'Clients that it has to allow are refused.',
    },
    {
      name: 'ApiFails',
      expr: 'sum by (instance) (rate(kiln_api_requests_total{status=~"5.."}[5m])) > 0.1',
      lasts: '5m',
      severity: 'warning',
      summary: 'The management API of {{ $labels.instance }} answers with errors',
      description: 'More than one call in ten seconds is answered with 5xx; the log has the reasons.',
    },
  ],
  'kiln-cluster': [
    {
      name: 'StoreLost',
      expr: 'kiln_cluster_connected == 0',
      lasts: '30s',
      severity: 'critical',
      summary: '{{ $labels.instance }} does not reach Redis',
      description: 'The node goes on with what it has; the configuration cannot be changed.',
    },
    {
      name: 'RedisSlow',
      expr: 'histogram_quantile(0.99, sum by (instance, le) (rate(kiln_redis_command_seconds_bucket[5m]))) > 0.2',
      lasts: '5m',
      severity: 'warning',
      summary: 'Redis answers {{ $labels.instance }} slowly',
      description:
        'One command in a hundred takes more than 0.2 s: leases are near their end, and calls of the API wait.',
    },
    {
      name: 'BeatsMissed',
      expr: 'rate(kiln_cluster_beats_total{result="missed"}[5m]) > 0.1',
      lasts: '5m',
      severity: 'warning',
      summary: '{{ $labels.instance }} misses beats',
      description: 'Redis does not take the beats by which the node keeps its streams and tasks.',
    },
    {
      name: 'NodeLost',
      expr: 'max by (state) (kiln_cluster_nodes{state=~"silent|lost"}) > 0',
      lasts: '1m',
      severity: 'critical',
      summary: 'A node of the cluster is {{ $labels.state }}',
      description: 'The cluster does not hear of a node. Its tasks are run by others.',
    },
    {
      name: 'Distrust',
      expr: 'kiln_cluster_distrusted > 0',
      lasts: '1m',
      severity: 'critical',
      summary: '{{ $labels.instance }} refuses {{ $labels.kind }} that are not authenticated',
      description: 'Something in Redis or a certificate is not of this cluster: another secret, or an attacker.',
    },
    {
      name: 'PeerCallsFail',
      expr: 'sum by (instance, call) (rate(kiln_peer_call_failures_total[5m])) > 0.1',
      lasts: '5m',
      severity: 'warning',
      summary: 'Calls of {{ $labels.instance }} to other nodes fail',
      description: 'Other nodes do not answer {{ $labels.call }}: the cluster port has to be open between all of them.',
    },
  ],
  'kiln-work': [
    {
      name: 'TasksFail',
      expr: 'sum by (instance, kind) (increase(kiln_task_failures_total[10m])) > 5',
      severity: 'warning',
      summary: 'Tasks of kind {{ $labels.kind }} fail at {{ $labels.instance }}',
      description: 'They are tried again; the log has the reasons (event task.failed).',
    },
    {
      name: 'RecordingLost',
      expr: 'increase(kiln_events_total{event=~"record.failed|delivery.given-up|dump.failed"}[10m]) > 0',
      severity: 'critical',
      summary: 'A recording or dump has failed at {{ $labels.instance }}',
      description: 'It was given up ({{ $labels.event }}); the log has the reason.',
    },
    {
      name: 'DiskSlow',
      expr: 'kiln_slow_disks > 0',
      lasts: '1m',
      severity: 'critical',
      summary: 'A disk does not answer at {{ $labels.instance }}',
      description: 'Recordings and what viewers rewind to are not written; the log names the folder (event disk.slow).',
    },
    {
      name: 'RewindLost',
      expr: 'increase(kiln_rewind_lost_segments_total[10m]) > 0',
      severity: 'warning',
      summary: 'Viewers of {{ $labels.instance }} cannot rewind to everything',
      description: 'Segments could not be written to the disk of DVR, or were removed: playlists list them as gaps.',
    },
    {
      name: 'RewindShort',
      expr: 'increase(kiln_events_total{event="rewind.short"}[10m]) > 0',
      severity: 'warning',
      summary: 'The disk of DVR is almost full at {{ $labels.instance }}',
      description: 'Older segments leave early, and playlists of type EVENT end.',
    },
    {
      name: 'RecordingsDeletedEarly',
      expr: 'increase(kiln_events_total{event="record.space-short"}[10m]) > 0',
      severity: 'warning',
      summary: 'Finished recordings at {{ $labels.instance }} have too little space',
      description:
        'They take almost MaxTotalSize: the oldest are soon deleted before DeleteAfter, or may not be deleted.',
    },
    {
      name: 'ChannelOffAir',
      expr: 'kiln_channel_state{state=~"fallback|silent|waiting"} == 1',
      lasts: '5m',
      severity: 'warning',
      summary: 'The channel {{ $labels.application }}/{{ $labels.channel }} is not on air',
      description: 'For five minutes it has not played what is scheduled: {{ $labels.state }}.',
    },
  ],
};
