"""What the substitute Pulumi plugins have in common: property values, diffs, the gRPC service, how one is laid out.

A plugin's own virtual environment gets a copy of this package beside the plugin's, as `lab.plugin_kit`. Of Pulumi's SDK
it uses the generated protobuf modules alone (`protocol`), because the SDK would cost a second at every start.
"""
