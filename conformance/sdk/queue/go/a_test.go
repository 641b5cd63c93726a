package conformance
import _ "github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
